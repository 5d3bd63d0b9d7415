import type { Random } from '../base/random.ts'
import { Query } from '../dns/message/query.ts'
import type { ReplyStream } from '../dns/message/reply-stream.ts'
import { Response } from '../dns/message/response.ts'
import type { TsigKey } from '../dns/tsig/key.ts'
import type { ZoneDirectory } from '../zone/lookup/zone-directory.ts'

/** What a handler may ask of the server it runs in. */
export interface ServerView {
  /** Label value of metrics: `dns://:53` or `dns://127.0.0.1:53`. */
  readonly address: string
  /** The zones of all server blocks, whatever views there are. */
  readonly zones: ZoneDirectory
  /**
   * Asks this server itself for (`qname`, `qtype`), as a client of the same address would, through
   * the block that serves the name: used where a CNAME leaves a plugin's zones. Resolves to a
   * transaction that the caller reads and then gives back with `release`, or to undefined where no
   * block serves the name or the chain is deeper than CHAIN_DEPTH_MAX. `qname`: lower-case wire form.
   */
  lookupInternally(
    tx: Transaction,
    qname: Uint8Array,
    qtype: number,
  ): Transaction | undefined | Promise<Transaction | undefined>
  release(tx: Transaction): void
  /**
   * True once the query came to a chain that another thread must run: it starts again there, so what
   * it comes to here is neither counted nor logged.
   */
  readonly isHandingOver: boolean
}

/** Most steps of a CNAME chain, inside and across zones. */
export const CHAIN_DEPTH_MAX = 8

const NO_BYTES = new Uint8Array(0)

/** Everything about one query in flight. Pooled: handlers borrow it and never keep it. */
export class Transaction {
  readonly query: Query = new Query()
  readonly response: Response = new Response()
  readonly random: Random
  /** The server that took the query. */
  server: ServerView
  /** Zone of the server block that serves it, printed: `k.example.com.`; '' before routing. */
  zone = ''
  /** Name of the `view` that matched; '' = none. */
  view = ''
  /** The key that the query proved to come from (`tsig`); undefined = it is not signed, or nobody looked. */
  tsigKey: TsigKey | undefined = undefined
  /**
   * Replies of more than one message, by TCP alone: they go out in place of the response, whatever rcode
   * the chain returns. Who sets it leaves `query` and `response` to the stream until that is closed.
   */
  stream: ReplyStream | undefined = undefined
  /** CNAME steps already taken by queries that asked this one: 0..CHAIN_DEPTH_MAX. */
  chainDepth = 0
  /** Monotonic milliseconds when the transport read it. */
  startedMs = 0
  /** Monotonic milliseconds when the chain was done; 0 = nobody asked yet (`finishedMs`). */
  finishedMs = 0
  /** Octets of the reply, not compressed; -1 = nobody asked yet (`sentOctets`). */
  sentOctets = -1
  /** Octets of records taken over from another transaction; grown and filled by `authority.ts`. */
  chasedOctets: Uint8Array = NO_BYTES

  constructor(random: Random, server: ServerView) {
    this.random = random
    this.server = server
  }
}
