import type { AnswerSource } from '../zone/lookup/answer-source.ts'
import type { Link } from './link.ts'
import type { Transaction } from './transaction.ts'

/** Returned by `serve` instead of an rcode: send nothing at all. */
export const DROP = -1

/**
 * One link of a server block's plugin chain. `serve` fills `tx.response` and returns the rcode
 * (also stored in `tx.response.rcode`), or DROP to send nothing. Or it hands over to the next
 * handler and returns the result of that.
 *
 * Links that never wait return a number: the hot path has no promise. Only a link that must wait
 * returns a Promise, and links above it must handle that: `if (typeof s === 'number') … else
 * s.then(…)`.
 *
 * SERVFAIL, REFUSED, FORMERR and NOTIMP mean that nothing was written (CoreDNS's contract): the
 * server clears the sections and sends the bare error. A reason goes into `tx.response.error`. A
 * handler that has records to send with such an rcode (the CNAMEs of a broken chain) stores the
 * rcode in `tx.response.rcode` and returns NOERROR. With any other return value,
 * `tx.response.rcode` is sent.
 */
export interface Handler {
  /** The directive's name. */
  readonly name: string
  /** The link that acts before and after the next one; absent = the handler serves as a whole. */
  readonly link?: Link | undefined
  /** Set if the handler serves only some queries; all others go to `next`. */
  readonly only?: Concern | undefined
  /** Set if the handler answers from zones. */
  readonly source?: AnswerSource | undefined
  serve(tx: Transaction): number | Promise<number>
}

/** The queries that a handler serves. */
export interface Concern {
  /** Bits of `Trait`. */
  readonly queries: number
  readonly next: Handler
  /** Selects those that the handler serves; undefined = all with these bits. */
  readonly selects?: ((tx: Transaction) => boolean) | undefined
}

/** Binds a link to the one below it; called once at load. */
export type HandlerFactory = (next: Handler) => Handler
