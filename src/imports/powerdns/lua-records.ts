import { scanType } from '../../dns/iana/types.ts'
import { Entry, ZoneLexer } from '../../zone/zonefile/lexer.ts'

/** The number that PowerDNS gives to its type LUA. */
export const LUA_TYPE = 65402

/** A LUA record. */
interface LuaRecord {
  /** Type of the records that the script returns. */
  readonly type: number
  readonly script: string
}

/**
 * Returns a zone file with each `LUA TYPE "SCRIPT"…` in the form of an unknown type (RFC 3597), which any server
 * reads. The lines of all records stay as they are.
 */
export function hideLuaRecords(text: Buffer): Buffer {
  const lexer = new ZoneLexer(text)
  const parts: Buffer[] = []
  let copied = 0
  for (let from = lexer.at; ; from = lexer.at) {
    const entry = lexer.next()
    if (entry === Entry.End) break
    if (entry !== Entry.Fields) continue
    const field = findType(lexer)
    if (field === -1) continue
    parts.push(text.subarray(copied, lexer.start[field]!), Buffer.from(hidden(lexer, field)))
    // An entry that ends at the end of the file has no line end.
    const lines = countLines(text.subarray(Math.max(from, lexer.start[field]!), lexer.at))
    const isWithoutEnd = text[lexer.at - 1] !== 0x0a
    const inside = Math.max(0, isWithoutEnd ? lines : lines - 1)
    parts.push(Buffer.from(`${inside === 0 ? '' : ` (${'\n'.repeat(inside)})`}\n`))
    copied = lexer.at
  }
  return Buffer.concat([...parts, text.subarray(copied)])
}

/** Reads the data that `hideLuaRecords` has written. */
export function readLuaRecord(rdata: Uint8Array): LuaRecord {
  const data = Buffer.from(rdata)
  return { type: data.readUInt16BE(0), script: data.toString('utf8', 2) }
}

/** Returns the field `LUA`, before which only the owner, a TTL and a class may be; -1 = another type. */
function findType(lexer: ZoneLexer): number {
  for (let field = lexer.hasOwner ? 1 : 0; field < Math.min(lexer.count, 4); field++) {
    const text = lexer.text(field)
    if (text.toUpperCase() === 'LUA') return field + 2 < lexer.count ? field : -1
    if (!/^(\d\w*|IN)$/i.test(text)) return -1
  }
  return -1
}

function hidden(lexer: ZoneLexer, field: number): string {
  const strings: string[] = []
  for (let i = field + 2; i < lexer.count; i++) strings.push(unescapeText(lexer.text(i)))
  const data = Buffer.from(`\0\0${strings.join('')}`)
  data.writeUInt16BE(scanType(lexer.text(field + 1)) ?? 0, 0)
  return `TYPE${LUA_TYPE} \\# ${data.length} ${data.toString('hex')}`
}

/** RFC 1035 section 5.1: `\"` and `\059`. */
function unescapeText(text: string): string {
  return text.replace(/\\(\d{3}|\D)/g, (_, escaped: string) => {
    return escaped.length === 3 ? String.fromCharCode(Number(escaped)) : escaped
  })
}

function countLines(text: Buffer): number {
  let lines = 0
  for (const octet of text) if (octet === 0x0a) lines++
  return lines
}
