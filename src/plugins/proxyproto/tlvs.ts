import type { Query } from '../../dns/message/query.ts'

/** A TLV: type 0, length of the value 1..2, value. */
const HEAD_OCTETS = 3
const TYPE_NOOP = 4
const NOOP = '040000'

/** The TLVs of a query in hexadecimal; '' = none, or they are cut. As in CoreDNS, padding (NOOP) has no value. */
export function printTlvs({ proxyTlvs, proxyTlvsAt, proxyTlvsOctets }: Query): string {
  const tlvs = Buffer.from(proxyTlvs.subarray(proxyTlvsAt, proxyTlvsAt + proxyTlvsOctets))
  const parts: string[] = []
  let next = 0
  for (let at = 0; at < tlvs.length; at = next) {
    if (at + HEAD_OCTETS > tlvs.length) return ''
    next = at + HEAD_OCTETS + tlvs.readUInt16BE(at + 1)
    if (next > tlvs.length) return ''
    parts.push(tlvs[at] === TYPE_NOOP ? NOOP : tlvs.toString('hex', at, next))
  }
  return parts.join('')
}
