import { key } from '../base/shared-values.ts'
import type { HashedName } from '../dns/name/hashed-name.ts'
import type { Transaction } from './transaction.ts'

/** The action for a reply over UDP. */
export const LimitAction = {
  Send: 0,
  /** Sent without records and with TC, so that a client with a real address retries over TCP. */
  Truncate: 1,
  Drop: 2,
} as const
export type LimitAction = (typeof LimitAction)[keyof typeof LimitAction]

/**
 * Limits the UDP replies to clients whose address is not verified. The server calls it once per
 * reply, after the chain. Replies over TCP, and to queries with a valid server cookie or a verified
 * TSIG, are exempt.
 */
export interface ReplyLimiter {
  /** Debits the reply in `tx.response`, whose rcode is final, at `tx.startedMs`. @hot */
  decide(tx: Transaction): LimitAction
  /**
   * Debits the octets by which the reply is longer than the query for `name`; below 1 = none. True:
   * truncate the reply, because too many such octets are sent. @hot
   */
  amplifies(tx: Transaction, name: HashedName, octets: number): boolean
}

/** The limiter of a server block. */
export const LIMITER = key<ReplyLimiter>('limiter of UDP replies')

/** True: the server block answers only clients that its rules allow. */
export const LIMITS_CLIENTS = key<boolean>('limit to known clients')

/** True: the server block replies to all its queries, with at most two addresses each: too few for an attack. */
export const SENDS_LITTLE = key<boolean>('small replies')
