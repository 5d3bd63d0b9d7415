import type { FastPathRole } from './fast-path.ts'
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
  /** Its effect on plain queries; absent = it has to process every query. */
  readonly plain?: FastPathRole | undefined
  serve(tx: Transaction): number | Promise<number>
}

/** Binds a link to the one below it; called once at load. */
export type HandlerFactory = (next: Handler) => Handler
