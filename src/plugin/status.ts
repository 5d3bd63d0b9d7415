import type { Clock } from '../base/clock.ts'
import { Rcode, RRType } from '../dns/iana/index.ts'
import { uncompressedOctets } from '../dns/message/compose.ts'
import { type Response, Section } from '../dns/message/response.ts'
import { DROP } from './handler.ts'
import type { Transaction } from './transaction.ts'

/**
 * True where a chain's status means that no plugin wrote a reply, so that the server sends a bare
 * error of that rcode (`Handler`).
 */
export function isUnwritten(status: number): boolean {
  return (
    status === Rcode.SERVFAIL ||
    status === Rcode.REFUSED ||
    status === Rcode.FORMERR ||
    status === Rcode.NOTIMP
  )
}

/** The rcode that goes out for a chain's `status`: the bare error's, or that of what was written. */
export function sentRcode(tx: Transaction, status: number): number {
  return isUnwritten(status) ? status : tx.response.rcode
}

/**
 * Octets of the reply that a chain's `status` leads to, names not compressed and nothing cut: what
 * logs and metrics report. 0 = silence. Counted once per query, by the first that asks: whoever changes
 * replies stands below those who ask.
 */
export function sentOctets(tx: Transaction, status: number): number {
  if (tx.sentOctets === -1) tx.sentOctets = countOctets(tx, status)
  return tx.sentOctets
}

function countOctets(tx: Transaction, status: number): number {
  if (status === DROP) return 0
  if (!isUnwritten(status)) return uncompressedOctets(tx.query, tx.response)
  // The server is going to clear the sections, but not before the handlers above have seen them.
  const count = tx.response.count
  tx.response.count = 0
  const octets = uncompressedOctets(tx.query, tx.response)
  tx.response.count = count
  return octets
}

/**
 * Monotonic milliseconds when the reply of a query was ready, for whoever reports how long it took:
 * the clock is read once per query, by the first that asks.
 */
export function finishedMs(tx: Transaction, clock: Clock): number {
  if (tx.finishedMs === 0) tx.finishedMs = clock.monotonic()
  return tx.finishedMs
}

/** What kind of reply a chain gave (RFC 2308 section 2), in CoreDNS's distinctions. */
export const ResponseKind = {
  /** An answer, or NOERROR with nothing that says otherwise. */
  Answer: 0,
  /** NOERROR, and a SOA says that the type is not there. */
  NoData: 1,
  /** NXDOMAIN with its SOA. */
  NameError: 2,
  /** NOERROR that refers to other servers. */
  Delegation: 3,
  /** Any other rcode, NXDOMAIN without SOA, or silence. */
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
  for (let i = 0; i < response.count; i++) {
    if (response.section[i] === section && (type === -1 || response.type[i] === type)) return true
  }
  return false
}
