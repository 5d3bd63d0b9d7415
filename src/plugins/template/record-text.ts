import { RRClass, scanClass, scanType } from '../../dns/iana/index.ts'
import { ROOT_NAME, scanName } from '../../dns/name/name.ts'
import { RdataError, type RdataField, scanRdata } from '../../dns/rdata/index.ts'
import { scanTtl } from '../../dns/text/ttl.ts'
import { Entry, ZoneLexer } from '../../zone/zonefile/lexer.ts'

/** TTL of a record whose text has none, as in CoreDNS. */
const TTL_SECONDS_DEFAULT = 3600

export interface TextRecord {
  /** Wire form. */
  readonly owner: Uint8Array
  readonly type: number
  readonly rrclass: number
  readonly ttlSeconds: number
  readonly rdata: Uint8Array
}

/**
 * Parses `OWNER [TTL] [CLASS] TYPE RDATA` (RFC 1035 section 5); TTL and class in any order.
 * Completes relative names with the root. Returns what is wrong with an invalid text.
 */
export function scanRecord(text: string): TextRecord | string {
  const fields = scanFields(text)
  return typeof fields === 'string' ? fields : recordOf(fields)
}

/** Returns the fields of the only entry, or what is wrong. */
function scanFields(text: string): readonly RdataField[] | string {
  const lexer = new ZoneLexer(Buffer.from(text.trim()))
  const entry = lexer.next()
  if (entry === Entry.Bad) return lexer.fault
  if (entry !== Entry.Fields) return 'the text has no record'
  const fields: RdataField[] = Array.from({ length: lexer.count }, (_, i) => ({
    text: lexer.input.toString('utf8', lexer.start[i], lexer.end[i]),
    quoted: lexer.quoted[i] === 1,
  }))
  return lexer.next() === Entry.End ? fields : 'the text has more than one record'
}

/** TTL and class in front of the type, and the index of the type. */
interface Header {
  readonly at: number
  readonly ttlSeconds: number | undefined
  readonly rrclass: number | undefined
}

function scanHeader(fields: readonly Pick<RdataField, 'text'>[], first: number): Header {
  let at = first
  let ttlSeconds: number | undefined
  let rrclass: number | undefined
  for (;;) {
    const word = fields[at]?.text ?? ''
    // A number can only be a TTL here. `ANY` is a type and a class; here it is a class.
    const ttl = ttlSeconds === undefined ? scanTtl(word) : undefined
    const named = rrclass === undefined ? scanClass(word) : undefined
    if (ttl !== undefined) ttlSeconds = ttl
    else if (named !== undefined) rrclass = named
    else return { at, ttlSeconds, rrclass }
    at++
  }
}

function recordOf(fields: readonly RdataField[]): TextRecord | string {
  const owner = scanName(fields[0]!.text)
  if (owner === undefined) return `${quote(fields[0])} is not a domain name`
  const { at, ttlSeconds, rrclass } = scanHeader(fields, 1)
  const type = scanType(fields[at]?.text ?? '')
  if (type === undefined) return notType(fields[at])
  const rdata = scanRdata(type, fields.slice(at + 1), ROOT_NAME)
  if (rdata instanceof RdataError) return rdata.message
  return {
    owner,
    type,
    rrclass: rrclass ?? RRClass.IN,
    ttlSeconds: ttlSeconds ?? TTL_SECONDS_DEFAULT,
    rdata,
  }
}

/** Stands for the text of an action, which has no white space. */
export const ACTION = '\0'

/** Returns why a text is no record, whatever its actions print; '' = it may be one. */
export function findLastingFault(text: string): string {
  const trimmed = text.trim()
  const [owner = ''] = /^\S*/.exec(trimmed) ?? []
  const rest = trimmed.slice(owner.length)
  if (!rest.includes(ACTION)) {
    const record = scanRecord(`${owner.includes(ACTION) ? 'a.' : owner} ${rest}`)
    return typeof record === 'string' ? record : ''
  }
  // The last word may continue in the action.
  const known = rest.slice(0, rest.indexOf(ACTION)).match(/^.*\s/s)?.[0] ?? ''
  if (/[();"]/.test(known)) return ''
  const words = (known.match(/\S+/g) ?? []).map((text) => ({ text }))
  const type = words[scanHeader(words, 0).at]
  return type === undefined || scanType(type.text) !== undefined ? '' : notType(type)
}

function notType(field: Pick<RdataField, 'text'> | undefined): string {
  return `${quote(field)} is not a TTL, a class or a record type`
}

function quote(field: Pick<RdataField, 'text'> | undefined): string {
  return field === undefined ? 'the end of the text' : JSON.stringify(field.text)
}
