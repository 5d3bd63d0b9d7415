import { Rcode, RRClass, RRType } from '../../src/dns/iana/index.ts'
import { Section } from '../../src/dns/message/section.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { printAddress, scanAddress } from '../../src/dns/text/address.ts'
import type { Handler } from '../../src/plugin/handler.ts'
import type { Transaction } from '../../src/plugin/transaction.ts'
import { answering } from '../support/transaction.ts'

/** A reply of the chain below a directive that translates addresses. */
export interface Below {
  readonly status?: number
  readonly rcode?: number
  readonly truncated?: boolean
  /** `ADDRESS TTL` of answer records. */
  readonly addresses?: readonly string[]
  /** TTL of a SOA in the authority section. */
  readonly soa?: number
}

const SOA = new Uint8Array(22)
const ZONE = scanName('example.com.')!

/** A chain that answers queries of `type` with `first`, others with `other`; undefined = they fail the test. */
export function chainOf(
  type: number,
  first: Below,
  other: Below | undefined,
  late = false,
): Handler {
  return answering((tx) => {
    if (tx.query.qtype === type) return fill(tx, first)
    if (other === undefined) throw new Error('the other type is not expected')
    return fill(tx, other)
  }, late)
}

function fill({ query, response }: Transaction, below: Below): number {
  for (const text of below.addresses ?? []) {
    const [address = '', ttl] = text.split(' ')
    const { family, bytes } = scanAddress(address)!
    const type = family === 1 ? RRType.A : RRType.AAAA
    const { length } = bytes
    response.add(Section.Answer, query.qname, 0, type, RRClass.IN, Number(ttl), bytes, 0, length)
  }
  if (below.soa !== undefined) {
    const { length } = SOA
    response.add(Section.Authority, ZONE, 0, RRType.SOA, RRClass.IN, below.soa, SOA, 0, length)
  }
  response.truncated = below.truncated === true
  response.rcode = below.rcode ?? Rcode.NOERROR
  return below.status ?? response.rcode
}

/** `ADDRESS TTL` or `SOA TTL` of each record of the response. */
export function printReply({ response }: Transaction): string[] {
  return Array.from({ length: response.count }, (_, i) => {
    const ttl = response.ttlSeconds[i]
    if (response.type[i] === RRType.SOA) return `SOA ${ttl}`
    const at = response.rdataOffset[i]!
    const rdata = response.rdataBytes[i]!.subarray(at, at + response.rdataOctets[i]!)
    return `${printAddress(rdata, rdata.length === 4 ? 1 : 2)} ${ttl}`
  })
}
