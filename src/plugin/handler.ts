import type { AnswerSource } from '../zone/lookup/answer-source.ts'
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

/** Returned by `Link.before`: the next link serves the query. No rcode is negative. */
export const PASS = -3

/** Properties of a query and of its reply. A link declares which of them concern it. */
export const Trait = {
  /** Every query, every reply. */
  Every: 1,
  /** The query has a client subnet. */
  Subnet: 2,
  /** The query asks for the name server's identifier. */
  Nsid: 4,
  /** The query is not of class IN. */
  OtherClass: 8,
  /** The query is for ANY. */
  Any: 16,
  /** The query is for AXFR or IXFR. */
  Transfer: 32,
  /** The reply has an error message. */
  Failed: 64,
  /** The reply may have records outside of the answer section. */
  Extra: 128,
  /** The reply has more than one record. */
  Several: 256,
  /** The link reads or changes the records of every reply. */
  Records: 512,
  /** The query has DO, or is for a type of DNSSEC: RRSIG to CDNSKEY. */
  Dnssec: 1024,
} as const

/**
 * A link that only acts before and after the next one: it never waits and never calls the next link
 * itself. The server runs such links from a plan (server/chain-plan.ts), and only those that the
 * traits of a query and its reply concern.
 *
 * Unless a link declares `Trait.Several` or `Trait.Records`, `after` does not see the records of an
 * direct answer (`Response.direct`).
 */
export abstract class Link implements Handler {
  abstract readonly name: string
  readonly link: Link = this
  readonly next: Handler
  /** The queries that `before` sees: bits of `Trait`; 0 = none. */
  readonly queries: number
  /** The replies that `after` sees: those with one of these bits of `Trait`. */
  readonly replies: number

  constructor(next: Handler, queries: number, replies: number) {
    this.next = next
    this.queries = queries
    this.replies = replies
  }

  /** Returns PASS, or the status of its own reply. */
  before(_tx: Transaction): number {
    return PASS
  }

  /** Returns the status in the place of `status`, which the links below returned. */
  after(_tx: Transaction, status: number): number {
    return status
  }

  /** Runs this link and all below it without a plan. */
  serve(tx: Transaction): number | Promise<number> {
    const own = this.before(tx)
    if (own !== PASS) return own
    const status = this.next.serve(tx)
    if (typeof status === 'number') return this.after(tx, status)
    return status.then((late) => this.after(tx, late))
  }
}
