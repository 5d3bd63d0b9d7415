import type { Random } from '../base/random.ts'
import { ALIASES_MAX } from '../dns/message/direct-answer.ts'
import { Query } from '../dns/message/query.ts'
import type { ReplyStream } from '../dns/message/reply-stream.ts'
import { Response } from '../dns/message/response.ts'
import type { ZoneDirectory } from '../dns/name/zone-directory.ts'
import type { Cidr } from '../dns/text/address.ts'
import type { TsigKey } from '../dns/tsig/key.ts'

/** The services of the server for handlers. */
export interface ServerView {
  /** Label value of metrics: `dns://:53` or `dns://127.0.0.1:53`. */
  readonly address: string
  /** The zones of all server blocks, regardless of views. */
  readonly zones: ZoneDirectory
  /**
   * Internal lookup: asks this server for (`qname`, `qtype`), as a client with the same address
   * would, through the block that serves the name. Used when a CNAME leaves a plugin's zones.
   * Resolves to a transaction, which the caller reads and then passes to `release`. Resolves to
   * undefined if no block serves the name or the chain is deeper than CHAIN_DEPTH_MAX. `qname`:
   * lower-case wire form.
   */
  lookupInternally(
    tx: Transaction,
    qname: Uint8Array,
    qtype: number,
  ): Transaction | undefined | Promise<Transaction | undefined>
  /**
   * Returns a transaction with the question, the client and the EDNS of `tx`, and an empty response;
   * the caller passes it to `release`. It does not depend on `tx` afterwards. Not for the hot path.
   */
  repeat(tx: Transaction): Transaction
  release(tx: Transaction): void
  /**
   * True once the query reached a chain that another thread must run. It starts again there, so its
   * result here is neither counted nor logged.
   */
  readonly isHandingOver: boolean
  /** False while too many queries wait for other threads: one more would be dropped. */
  readonly canHandOver: boolean
  /**
   * Gives the query to another thread. `directive`: the one that answers there. Returns the status
   * that the caller must return.
   */
  handOver(directive: string): number
}

/** Most steps of a CNAME chain, inside and across zones. */
export const CHAIN_DEPTH_MAX: number = ALIASES_MAX

const NO_BYTES = new Uint8Array(0)

/** Everything about one query in flight. Pooled: handlers borrow it and never keep it. */
export class Transaction {
  readonly query: Query = new Query()
  readonly response: Response = new Response()
  readonly random: Random
  /** The server that received the query. */
  server: ServerView
  /** Zone of the server block that serves it, printed: `k.example.com.`; '' before routing. */
  zone = ''
  /** Name of the `view` that matched; '' = none. */
  view = ''
  /**
   * The key that the query's signature was verified with (`tsig`); undefined = not signed, or not
   * checked.
   */
  tsigKey: TsigKey | undefined = undefined
  /**
   * Replies of more than one message, over TCP only: they are sent instead of the response,
   * whatever rcode the chain returns. A handler that sets it must not use `query` and `response`
   * until the stream is closed.
   */
  stream: ReplyStream | undefined = undefined
  /** CNAME steps already taken by the queries that caused this one: 0..CHAIN_DEPTH_MAX. */
  chainDepth = 0
  /**
   * The client gets each IPv4 address of the response as an address in this IPv6 prefix (RFC 6052):
   * set by `dns64` while the links below it look for A records. Undefined = as it is.
   */
  nat64Prefix: Cidr | undefined = undefined
  /** Monotonic milliseconds when the transport read it. */
  startedMs = 0
  /**
   * Monotonic milliseconds at which handlers that wait must give up and return SERVFAIL (`cancel`).
   */
  deadlineMs: number = Number.POSITIVE_INFINITY
  /** Monotonic milliseconds at which the chain was done; 0 = not read yet (`finishedMs`). */
  finishedMs = 0
  /** Octets of the reply, not compressed; -1 = not computed yet (`sentOctets`). */
  sentOctets = -1
  /** Room for the reply. */
  out: Uint8Array = NO_BYTES
  /** Offset of `out` in the packet memory; -1 = it is elsewhere. */
  outAt = -1
  /** Octets of records copied from another transaction; `authority.ts` grows and fills it. */
  chasedOctets: Uint8Array = NO_BYTES

  constructor(random: Random, server: ServerView) {
    this.random = random
    this.server = server
  }
}
