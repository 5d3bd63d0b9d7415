import type { Clock } from '../base/clock.ts'
import { Rcode, RRType } from '../dns/iana/index.ts'
import { uncompressedOctets } from '../dns/message/compose.ts'
import type { Response } from '../dns/message/response.ts'
import { Section } from '../dns/message/section.ts'
import { DROP } from './handler.ts'
import type { Transaction } from './transaction.ts'

/**
 * True if a chain's status means that no plugin wrote a reply. The server then sends a bare error
 * with that rcode (`Handler`).
 */
export function isUnwritten(status: number): boolean {
  return (
    status === Rcode.SERVFAIL ||
    status === Rcode.REFUSED ||
    status === Rcode.FORMERR ||
    status === Rcode.NOTIMP
  )
}

/**
 * The rcode that is sent for a chain's `status`: that of the bare error, or that of the written
 * reply.
 */
export function sentRcode(tx: Transaction, status: number): number {
  return isUnwritten(status) ? status : tx.response.rcode
}

/**
 * Octets of the reply that a chain's `status` leads to, with uncompressed names and nothing cut:
 * the size in logs and metrics. 0 = no reply. Computed once per query, on the first call, so
 * directives that change replies must be below those that call it.
 */
export function sentOctets(tx: Transaction, status: number): number {
  if (tx.sentOctets === -1) tx.sentOctets = countOctets(tx, status)
  return tx.sentOctets
}

function countOctets(tx: Transaction, status: number): number {
  if (status === DROP) return 0
  if (!isUnwritten(status)) return uncompressedOctets(tx.query, tx.response)
  // The server will clear the sections, but only after the handlers above have read them.
  const { response } = tx
  const { count, direct } = response
  const directCount = direct.count
  response.count = 0
  direct.count = 0
  const octets = uncompressedOctets(tx.query, response)
  response.count = count
  direct.count = directCount
  return octets
}

/**
 * Monotonic milliseconds at which the reply of a query was ready, for reports of its duration. The
 * clock is read once per query, on the first call.
 */
export function finishedMs(tx: Transaction, clock: Clock): number {
  if (tx.finishedMs === 0) tx.finishedMs = clock.monotonic()
  return tx.finishedMs
}

/** What kind of reply a chain gave (RFC 2308 section 2), in CoreDNS's distinctions. */
export const ResponseKind = {
  /** An answer, or NOERROR of another kind than those below. */
  Answer: 0,
  /** NOERROR with a SOA: the name has no records of the type. */
  NoData: 1,
  /** NXDOMAIN with its SOA. */
  NameError: 2,
  /** NOERROR with a referral to other servers. */
  Delegation: 3,
  /** Any other rcode, NXDOMAIN without SOA, or no reply. */
  Error: 4,
} as const
export type ResponseKind = (typeof ResponseKind)[keyof typeof ResponseKind]

/** Classifies the reply in `tx.response` after the chain returned `status`. Allocates nothing. */
export function responseKind(tx: Transaction, status: number): ResponseKind {
  if (status === DROP || isUnwritten(status)) return ResponseKind.Error
  const response = tx.response
  if (response.rcode === Rcode.NOERROR) {
    if (holds(response, Section.Answer, -1)) return ResponseKind.Answer
    if (holds(response, Section.Authority, RRType.SOA)) return ResponseKind.NoData
    if (holds(response, Section.Authority, RRType.NS)) return ResponseKind.Delegation
    return ResponseKind.Answer
  }
  const denied = response.rcode === Rcode.NXDOMAIN && holds(response, Section.Authority, RRType.SOA)
  return denied ? ResponseKind.NameError : ResponseKind.Error
}

/** Whether a section has a record of `type`; -1: of any type. */
function holds(response: Response, section: Section, type: number): boolean {
  const { direct } = response
  if (direct.count > 0) {
    if (direct.soaOffset === 0) return section === Section.Answer && type === -1
    return section === direct.soaSection && (type === -1 || type === RRType.SOA)
  }
  for (let i = 0; i < response.count; i++) {
    if (response.section[i] === section && (type === -1 || response.type[i] === type)) return true
  }
  return false
}
