import { Entry, ZoneLexer } from '../../zone/zonefile/lexer.ts'

/** Numbers of private use (RFC 6895 section 3.1) that stand for the types of gdnsd. */
const TYPES: ReadonlyMap<string, number> = new Map([
  ['DYNA', 65_280],
  ['DYNC', 65_281],
])

/**
 * Returns a zone file with each `DYNA PLUGIN!RESOURCE` in the form of an unknown type (RFC 3597), which any server
 * reads, and without the lower limit of its TTL. The lines of all records stay as they are.
 */
export function hideDynamicRecords(text: Buffer): Buffer {
  const lexer = new ZoneLexer(text)
  const parts: Buffer[] = []
  let copied = 0
  for (let entry = lexer.next(); entry !== Entry.End; entry = lexer.next()) {
    if (entry !== Entry.Fields) continue
    const field = lexer.count - 2
    const type = TYPES.get(field < 0 ? '' : lexer.text(field).toUpperCase())
    if (type === undefined) continue
    for (let i = 0; i < field; i++) {
      const slash = /^\d\w*(?=\/\d)/.exec(lexer.text(i))?.[0]
      if (slash === undefined) continue
      parts.push(text.subarray(copied, lexer.start[i]! + slash.length))
      copied = lexer.end[i]!
    }
    const data = Buffer.from(lexer.text(field + 1))
    parts.push(text.subarray(copied, lexer.start[field]!), Buffer.from(`TYPE${type}`))
    // Parentheses and line ends may be between the two fields.
    parts.push(text.subarray(lexer.end[field]!, lexer.start[field + 1]!))
    parts.push(Buffer.from(`\\# ${data.length} ${data.toString('hex')}`))
    copied = lexer.end[field + 1]!
  }
  return Buffer.concat([...parts, text.subarray(copied)])
}

/** Returns whether a type stands for one of gdnsd. */
export function isDynamic(type: number): boolean {
  return [...TYPES.values()].includes(type)
}
