import type { HashedName } from '../zone/image/hashed-name.ts'
import type { Transaction } from './transaction.ts'

/** What becomes of a reply over UDP. */
export const LimitAction = {
  Send: 0,
  /** It is sent without records and with TC, so that a client with a real address retries over TCP. */
  Truncate: 1,
  Drop: 2,
} as const
export type LimitAction = (typeof LimitAction)[keyof typeof LimitAction]

/**
 * Limits the UDP replies to clients whose address nothing proves. The server calls it once per reply,
 * after the chain. Replies over TCP, and to queries with a valid server cookie or a verified TSIG, are exempt.
 */
export interface ReplyLimiter {
  /** Debits the reply in `tx.response`, whose rcode is final. `nowMs`: monotonic. @hot */
  decide(tx: Transaction, nowMs: number): LimitAction
  /** The same of the positive answer to `simpleQuery`; `tx.query` has the addresses. @hot */
  decideFast(tx: Transaction, nowMs: number): LimitAction
  /**
   * Debits the octets by which the reply to a query for `name` is longer than that; below 1 = none. True: it is to be
   * truncated, since too many such octets go out. @hot
   */
  amplifies(tx: Transaction, name: HashedName, octets: number, nowMs: number): boolean
}
