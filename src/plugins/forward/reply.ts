import type { UpstreamQuestion } from '../../client/upstream/upstream-query.ts'
import { OptionCode, printRcode, Rcode, RRType } from '../../dns/iana/index.ts'
import { HeaderFlag } from '../../dns/message/header.ts'
import type { Message, ResourceRecord } from '../../dns/message/message.ts'
import type { Query } from '../../dns/message/query.ts'
import { RESPONSE_RR_MAX } from '../../dns/message/response.ts'
import { Section } from '../../dns/message/section.ts'
import { LOWER } from '../../dns/name/lower.ts'
import { isUnwritten } from '../../plugin/status.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { countLabels } from '../../zone/lookup/zone-set.ts'

/** Highest rcode without EDNS. The others concern only the two servers that speak EDNS. */
const PLAIN_RCODE_MAX = 15

/** Returns the data of the client subnet option to send (RFC 7871 section 6); undefined = none. */
export function subnetOption(query: Query): Uint8Array | undefined {
  if (!query.hasEcs) return undefined
  const octets = (query.ecsSourceBits + 7) >> 3
  const data = new Uint8Array(4 + octets)
  data[1] = query.ecsFamily
  data[2] = query.ecsSourceBits
  data.set(query.ecsAddress.subarray(0, octets), 4)
  return data
}

/** Returns why a reply must not be passed on; '' = it may. */
export function refusal(message: Message, { subnet }: UpstreamQuestion): string {
  const { rcode, answer, authority, additional } = message
  if (rcode > PLAIN_RCODE_MAX) return `rcode ${printRcode(rcode)}`
  if (answer.length + authority.length + additional.length > RESPONSE_RR_MAX) {
    return `the reply has more than ${RESPONSE_RR_MAX} records`
  }
  const echoed = optionOf(message, OptionCode.ECS)
  // The reply to another subnet: RFC 7871 section 7.3.
  if (echoed === undefined || isSameSubnet(echoed, subnet)) return ''
  return 'the client subnet of the reply is not that of the query'
}

/** Copies a reply to the response, and returns the status of the handler. */
export function writeReply(tx: Transaction, message: Message): number {
  const { response } = tx
  const { rcode, flags } = message
  response.rcode = rcode
  response.authoritative = (flags & HeaderFlag.AA) !== 0
  response.recursionAvailable = (flags & HeaderFlag.RA) !== 0
  response.authenticData = (flags & HeaderFlag.AD) !== 0
  response.truncated = (flags & HeaderFlag.TC) !== 0
  addRecords(tx, Section.Answer, message.answer)
  addRecords(tx, Section.Authority, message.authority)
  addRecords(tx, Section.Additional, message.additional)
  if (rcode === Rcode.NXDOMAIN) response.imputedLabel = deniedLabel(message, tx.query)
  // A view may have read the client's address as well.
  const scopeBits = optionOf(message, OptionCode.ECS)?.[3] ?? 0
  // An address has no more bits (RFC 7871 section 6).
  const bitsMax = tx.query.ecsFamily === 2 ? 128 : 32
  response.scopeBits = Math.max(response.scopeBits, Math.min(scopeBits, bitsMax))
  const extended = optionOf(message, OptionCode.EDE)
  if (extended !== undefined && extended.length >= 2) {
    response.edeCode = (extended[0]! << 8) | extended[1]!
    response.edeText = extended.subarray(2)
  }
  // The reply of the upstream is sent with its flags, even if it is an error.
  return isUnwritten(rcode) ? Rcode.NOERROR : rcode
}

function addRecords(tx: Transaction, section: Section, records: readonly ResourceRecord[]): void {
  const { query, response } = tx
  for (const { owner, type, rrclass, ttlSeconds, rdata } of records) {
    // `compose` knows the place of the query's own name.
    const name = isQueryName(owner, query) ? query.qname : owner
    response.add(section, name, 0, type, rrclass, ttlSeconds, rdata, 0, rdata.length)
  }
}

/** Returns the first label of the zone that denies the name; 0 = unknown. */
function deniedLabel({ authority }: Message, { labelCount }: Query): number {
  const soa = authority.find(({ type }) => type === RRType.SOA)
  return soa === undefined ? 0 : Math.max(0, labelCount - countLabels(soa.owner))
}

function isQueryName(name: Uint8Array, { qname, qnameOctets }: Query): boolean {
  if (name.length !== qnameOctets) return false
  for (let i = 0; i < qnameOctets; i++) if (LOWER[name[i]!] !== qname[i]) return false
  return true
}

function optionOf({ edns }: Message, code: number): Uint8Array | undefined {
  return edns?.options.find((option) => option.code === code)?.data
}

/** True if `echoed`, of a reply, is the subnet of the query with any scope. */
function isSameSubnet(echoed: Uint8Array, sent: Uint8Array | undefined): boolean {
  if (sent === undefined || echoed.length !== sent.length) return false
  return echoed.every((octet, i) => i === 3 || octet === sent[i])
}
