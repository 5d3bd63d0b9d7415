import type { FastPathRole } from './fast-path.ts'
import type { Transaction } from './transaction.ts'

/** Returned by `serve` instead of an rcode: send nothing at all. */
export const DROP = -1

/**
 * One link of a server block's plugin chain. `serve` fills `tx.response` and returns the rcode (also
 * stored in `tx.response.rcode`), or DROP for silence, or hands over to the next handler and returns
 * what that returned.
 *
 * Links that never wait return a number: the hot path has no promise. Only a link that must wait
 * returns a Promise, and links above it must cope: `if (typeof s === 'number') … else s.then(…)`.
 *
 * SERVFAIL, REFUSED, FORMERR and NOTIMP mean that nothing was written (CoreDNS's contract): the
 * server clears the sections and sends the bare error. A reason goes into `tx.response.error`. Who has
 * records to send with such an rcode (the CNAMEs of a chain that broke) stores it in
 * `tx.response.rcode` and returns NOERROR. With any other return value it is `tx.response.rcode` that goes out.
 */
export interface Handler {
  /** The directive's name. */
  readonly name: string
  /** What it does to plain queries; absent = it has to see every query. */
  readonly plain?: FastPathRole | undefined
  serve(tx: Transaction): number | Promise<number>
}

/** Binds a link to the one below it; called once at load. */
export type HandlerFactory = (next: Handler) => Handler
