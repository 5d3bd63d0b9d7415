import type { Query } from '../../dns/message/query.ts'

/** Digits of a number of 16 bits. */
const DIGITS_MAX = 5
const NUMBER_MAX = 65_535
const ZERO = 0x30

/** What a resolver reports (RFC 9567 section 6.1.1): `_er.TYPE.NAME.CODE._er.AGENT`. Reused. */
export class ErrorReport {
  type = 0
  /** Extended error code (RFC 8914). */
  code = 0
  /** Labels of the qname that the failed name has: from `nameLabel` to before `nameEnd`. */
  nameLabel = 0
  nameEnd = 0

  /** Reads the qname of a query. `agentLabel`: where the agent's name starts in it. False = it reports nothing. */
  read(query: Query, agentLabel: number): boolean {
    const last = agentLabel - 1
    // The failed name may be the root, which has no label.
    if (last < 3 || !isMark(query, 0) || !isMark(query, last)) return false
    this.type = numberAt(query, 1)
    this.code = numberAt(query, last - 1)
    this.nameLabel = 2
    this.nameEnd = last - 1
    return this.type >= 0 && this.code >= 0
  }
}

/** True if a label is `_er`. */
export function isMark({ qname, labelOffset }: Query, label: number): boolean {
  const at = labelOffset[label]!
  return (
    qname[at] === 3 && qname[at + 1] === 0x5f && qname[at + 2] === 0x65 && qname[at + 3] === 0x72
  )
}

/** Returns the decimal number of 16 bits in a label, or -1. */
function numberAt({ qname, labelOffset }: Query, label: number): number {
  const at = labelOffset[label]!
  const octets = qname[at]!
  if (octets > DIGITS_MAX) return -1
  let number = 0
  for (let i = 1; i <= octets; i++) {
    const digit = qname[at + i]! - ZERO
    if (digit < 0 || digit > 9) return -1
    number = number * 10 + digit
  }
  return number > NUMBER_MAX ? -1 : number
}
