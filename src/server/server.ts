import type { Clock } from '../base/clock.ts'
import type { Random } from '../base/random.ts'
import { LineBudget } from '../base/telemetry/line-budget.ts'
import type { Logger } from '../base/telemetry/log.ts'
import { type CookieJar, SERVER_COOKIE_OCTETS } from '../dns/edns/cookie.ts'
import { Opcode } from '../dns/iana/opcodes.ts'
import { Rcode } from '../dns/iana/rcodes.ts'
import { compose, composeAt, replyLimit } from '../dns/message/compose.ts'
import { parsePacket, parseQuery } from '../dns/message/parse-query.ts'
import { ParseStatus, Protocol } from '../dns/message/query.ts'
import { PAYLOAD_OCTETS_DEFAULT } from '../dns/message/response.ts'
import type { ZoneDirectory } from '../dns/name/zone-directory.ts'
import { DROP, PASS, Trait } from '../plugin/handler.ts'
import { LimitAction, type ReplyLimiter } from '../plugin/reply-limiter.ts'
import { isUnwritten } from '../plugin/status.ts'
import { CHAIN_DEPTH_MAX, type ServerView, type Transaction } from '../plugin/transaction.ts'
import { HAND_OVER, STREAMED } from '../transport/exchange.ts'
import {
  type ChainPlan,
  type PlannedBlock,
  type PlannedLink,
  planChain,
  replyTraits,
  traitsOf,
} from './chain-plan.ts'
import { DroppedCount, queriesAt, ServerCount, type ServerCounts } from './counters.ts'
import { prepareInternalLookup, repeatQuery, takePeerAsClient } from './internal-lookup.ts'
import { type RoutedBlock, RoutingTable } from './routing.ts'
import { TransactionPool } from './transaction-pool.ts'
import { ZoneMemo } from './zone-memo.ts'

const NO_DEADLINE = Number.POSITIVE_INFINITY
/** Panics that are logged per period. */
const PANIC_LINES_MAX = 10
const PANIC_PERIOD_MS = 60_000
/** Octets of a client cookie with one of our server cookies. */
const WHOLE_COOKIE_OCTETS = 8 + SERVER_COOKIE_OCTETS

export interface ServerOptions {
  /** Label value of metrics and log lines: `dns://:53`. */
  readonly address: string
  /** Every zone of every block that listens here, in the order of the Corefile. */
  readonly blocks: readonly RoutedBlock[]
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly counters: ServerCounts
  /** Makes server cookies; undefined = COOKIE options are ignored. */
  readonly cookies?: CookieJar | undefined
  /** See `ServerView`; absent = always. */
  readonly canHandOver?: () => boolean
  /** Idle timeout sent to clients that ask for edns-tcp-keepalive; undefined = none is sent. */
  readonly tcpIdleMs?: number | undefined
}

/**
 * Answers the queries of one listen address:
 *
 *     serve ─▶ parsePacket ─▶ ZoneMemo, RoutingTable ─▶ plan of the chain ─▶ #finish (cookie, limit) ─▶ composeAt
 *                  └ bad ────────────┴ none ────────────────────────────▶ bare error ┘
 *
 * All of it is synchronous unless a handler waits.
 */
export class Server implements ServerView {
  readonly address: string
  readonly #routing: RoutingTable<PlannedBlock>
  readonly #memo: ZoneMemo
  readonly #clock: Clock
  readonly #log: Logger
  readonly #counters: ServerCounts
  /** Indexed by `DroppedCount`. */
  readonly #dropped: Float64Array
  readonly #cookies: CookieJar | undefined
  readonly #keepaliveDeciseconds: number
  readonly #pool: TransactionPool
  readonly #canHandOver: () => boolean
  readonly #panicLines = new LineBudget(PANIC_LINES_MAX, PANIC_PERIOD_MS)
  /** Limiter of replies without a block: that of the first block that has one. */
  readonly #limiter: ReplyLimiter | undefined
  /** See `handOver`. */
  isHandingOver = false
  /** The directive that answers in the other thread; valid while `isHandingOver`. */
  handedOverTo = ''

  constructor(options: ServerOptions) {
    this.address = options.address
    const blocks = options.blocks.map((block) => ({ ...block, plan: planChain(block.chain) }))
    this.#routing = new RoutingTable(blocks)
    this.#memo = new ZoneMemo(this.#routing)
    this.#clock = options.clock
    this.#log = options.log
    this.#counters = options.counters
    this.#dropped = options.counters.of(options.address)
    this.#cookies = options.cookies
    this.#keepaliveDeciseconds =
      options.tcpIdleMs === undefined ? -1 : Math.min(Math.floor(options.tcpIdleMs / 100), 0xffff)
    this.#canHandOver = options.canHandOver ?? (() => true)
    this.#pool = new TransactionPool(options.random, this)
    this.#limiter = options.blocks.find(({ limiter }) => limiter !== undefined)?.limiter
  }

  get zones(): ZoneDirectory {
    return this.#routing.zones
  }

  get canHandOver(): boolean {
    return this.#canHandOver()
  }

  /** Called by a link that would have to wait, in a thread that cannot. */
  handOver(directive: string): number {
    this.isHandingOver = true
    this.handedOverTo = directive
    return DROP
  }

  /** Returns a transaction of this server; `release` returns it to the pool. */
  acquire(): Transaction {
    return this.#pool.take()
  }

  release(tx: Transaction): void {
    this.#pool.give(tx)
  }

  /**
   * Answers the packet in `tx.query` (packet, packetAt, packetOctets, protocol and addresses filled
   * in). Writes the reply to `out`, 65535 octets or as many as the protocol allows, and returns its
   * length. `outAt`: offset of `out` in the packet memory; -1 = it is elsewhere. 0 = send
   * nothing, HAND_OVER = another thread must answer (`handOver`), STREAMED = see `tx.stream`.
   * Returns a Promise of the length only if the chain waits. The Promise never rejects unless the block has `debug`.
   */
  serve(tx: Transaction, out: Uint8Array, outAt = -1): number | Promise<number> {
    const query = tx.query
    tx.out = out
    tx.outAt = outAt
    tx.startedMs = this.#clock.monotonic()
    tx.finishedMs = 0
    tx.deadlineMs = NO_DEADLINE
    tx.sentOctets = -1
    tx.zone = ''
    tx.view = ''
    tx.chainDepth = 0
    tx.nat64Prefix = undefined
    tx.tsigKey = undefined
    tx.stream = undefined
    this.isHandingOver = false
    const status =
      query.packetAt === -1
        ? parseQuery(query, query.packet, query.packetOctets)
        : parsePacket(query, query.packetAt, query.packetOctets)
    tx.response.reset(query)
    this.#addOptions(tx)
    if (status !== ParseStatus.Ok) return this.#refusePacket(tx, status)
    takePeerAsClient(query)

    const isKnown = this.#memo.find(query)
    const block = isKnown ? this.#memo.block : this.#routing.find(tx)
    if (query.opcode === Opcode.NOTIFY && block?.takesNotify !== true) {
      return this.#refusePacket(tx, ParseStatus.NotImp)
    }
    if (block === undefined) {
      this.#dropped[DroppedCount.Refused]! += 1
      return this.#sendBare(tx, Rcode.REFUSED, PAYLOAD_OCTETS_DEFAULT)
    }
    tx.zone = block.zoneText
    tx.view = block.viewName
    const rcode = block.debug ? this.#run(tx, block, isKnown) : this.#guard(tx, block, isKnown)
    if (this.isHandingOver) return HAND_OVER
    if (typeof rcode === 'number') return this.#finish(tx, block, rcode)
    return this.#finishLater(tx, block, rcode)
  }

  lookupInternally(
    tx: Transaction,
    qname: Uint8Array,
    qtype: number,
  ): Transaction | undefined | Promise<Transaction | undefined> {
    if (tx.chainDepth >= CHAIN_DEPTH_MAX) return undefined
    const nested = this.#pool.take()
    prepareInternalLookup(nested, tx, qname, qtype)
    const block = this.#routing.find(nested)
    // A view has read the client's address, so the answer depends on it even if no block was found.
    tx.response.scopeBits = Math.max(tx.response.scopeBits, nested.response.scopeBits)
    if (block === undefined) {
      this.#pool.give(nested)
      return undefined
    }
    nested.zone = block.zoneText
    nested.view = block.viewName
    const rcode = block.debug ? block.chain.serve(nested) : this.#guard(nested, block, false)
    if (typeof rcode === 'number') return this.#settleInternalLookup(nested, rcode)
    return rcode.then((later) => this.#settleInternalLookup(nested, later))
  }

  repeat(tx: Transaction): Transaction {
    const copy = this.#pool.take()
    repeatQuery(copy, tx)
    return copy
  }

  #settleInternalLookup(nested: Transaction, rcode: number): Transaction | undefined {
    if (rcode === DROP) {
      this.#pool.give(nested)
      return undefined
    }
    if (isUnwritten(rcode)) clearForError(nested, rcode)
    return nested
  }

  /** Runs the chain so that a bug in a handler costs one query, not the process. */
  #guard(tx: Transaction, block: PlannedBlock, isKnown: boolean): number | Promise<number> {
    try {
      const rcode = this.#run(tx, block, isKnown)
      if (typeof rcode === 'number') return rcode
      return this.#guardLater(tx, rcode)
    } catch (error) {
      return this.#recover(tx, error)
    }
  }

  // A function with a closure allocates the closure's variables at every call, so closures are apart.
  #guardLater(tx: Transaction, rcode: Promise<number>): Promise<number> {
    return rcode.catch((error: unknown) => this.#recover(tx, error))
  }

  /**
   * Runs a chain by its plan. `isKnown`: `#memo` knows the zone of the query. @hot
   */
  #run(tx: Transaction, block: PlannedBlock, isKnown: boolean): number | Promise<number> {
    const { plan } = block
    // Links may pass NOTIFYs by, so these take the chain as it is.
    if (tx.query.opcode !== Opcode.QUERY) return block.chain.serve(tx)
    const traits = traitsOf(tx.query)
    const { links } = plan
    let reached = links.length
    let status: number | Promise<number> = PASS
    if ((plan.queries & traits) !== 0) {
      for (let i = 0; i < links.length; i++) {
        const planned = links[i]!
        if ((planned.queries & traits) === 0) continue
        status = planned.link === undefined ? serveSelected(planned, tx) : planned.link.before(tx)
        if (status === PASS) continue
        reached = i
        break
      }
    }
    if (status === PASS)
      status = isKnown && this.#answerDirectly(tx) ? tx.response.rcode : plan.bottom.serve(tx)
    if (typeof status !== 'number') {
      return finishLinksLater(tx, plan, reached, traits, status)
    }
    return finishLinks(tx, plan, reached, traits, status)
  }

  /** Makes a direct answer from the zone in `#memo`. @hot */
  #answerDirectly({ query, response }: Transaction): boolean {
    const { answers, zone, zoneLabel, hasAllBelow, source } = this.#memo
    const { denies, name } = source!
    if (query.zoneVersionRequested) return false
    if (!answers!.answer(query, response, zone, zoneLabel, hasAllBelow, denies)) return false
    response.answeredBy = name
    return true
  }

  #recover(tx: Transaction, error: unknown): number {
    this.#counters.add(ServerCount.Panics)
    clearForError(tx, Rcode.SERVFAIL)
    // A client can repeat the packet that caused the panic. The counter counts all of them.
    if (!this.#panicLines.take(this.#clock.monotonic())) return Rcode.SERVFAIL
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    this.#log.error(`Recovered from panic in server: "${this.address}" ${text}`, 'panic')
    return Rcode.SERVFAIL
  }

  async #finishLater(tx: Transaction, block: RoutedBlock, rcode: Promise<number>): Promise<number> {
    return this.#finish(tx, block, await rcode)
  }

  #finish(tx: Transaction, block: RoutedBlock, rcode: number): number {
    const octets = this.#reply(tx, block, rcode)
    if (block.tap !== undefined) block.tap.see(tx, octets)
    return octets
  }

  #reply(tx: Transaction, block: RoutedBlock, rcode: number): number {
    if (rcode === DROP) return 0
    if (isUnwritten(rcode)) clearForError(tx, rcode)
    if (tx.stream !== undefined) return STREAMED
    return this.#send(tx, block.bufsizeOctets, block.limiter)
  }

  /** Replies to a packet that is not a query that we serve; 0 = no reply. */
  #refusePacket(tx: Transaction, status: ParseStatus): number {
    switch (status) {
      case ParseStatus.FormErr:
        this.#dropped[DroppedCount.FormErr]! += 1
        return this.#sendBare(tx, Rcode.FORMERR, PAYLOAD_OCTETS_DEFAULT)
      case ParseStatus.NotImp:
        this.#dropped[DroppedCount.NotImp]! += 1
        return this.#sendBare(tx, Rcode.NOTIMP, PAYLOAD_OCTETS_DEFAULT)
      case ParseStatus.BadVers:
        this.#dropped[DroppedCount.BadVers]! += 1
        return this.#sendBare(tx, Rcode.BADVERS, PAYLOAD_OCTETS_DEFAULT)
      default:
        this.#counters.add(ServerCount.Ignored)
        return 0
    }
  }

  #sendBare(tx: Transaction, rcode: number, bufsizeOctets: number): number {
    const { protocol, peerFamily } = tx.query
    this.#dropped[queriesAt(protocol, peerFamily)]! += 1
    clearForError(tx, rcode)
    return this.#send(tx, bufsizeOctets, this.#limiter)
  }

  /** Adds our own options before the chain runs, because logs and metrics count their octets. */
  #addOptions({ query, response }: Transaction): void {
    response.keepaliveDeciseconds = query.connectionEnds ? 0 : this.#keepaliveDeciseconds
    if (query.cookieOctets !== 0 && this.#cookies !== undefined) {
      // The cookie itself is made when the reply is composed.
      response.serverCookieOctets = SERVER_COOKIE_OCTETS
    }
  }

  #send(tx: Transaction, bufsizeOctets: number, limiter: ReplyLimiter | undefined): number {
    const { query, response } = tx
    response.payloadOctets = bufsizeOctets
    // Over TCP, with a valid server cookie or with a signature, the address is real.
    const isProved = this.#checkCookie(tx) || query.protocol !== Protocol.Udp
    if (limiter === undefined || isProved || tx.tsigKey !== undefined) {
      return this.#compose(tx, bufsizeOctets)
    }
    const action = limiter.decide(tx)
    if (action === LimitAction.Drop) return 0
    if (action === LimitAction.Truncate) truncate(tx)
    const octets = this.#compose(tx, bufsizeOctets)
    // A signed reply must not be composed again. Such an error is hardly longer than its query.
    if (response.signer !== null) return octets
    if (!limiter.amplifies(tx, query, octets - query.packetOctets)) return octets
    truncate(tx)
    return this.#compose(tx, bufsizeOctets)
  }

  /**
   * Fills in the cookie of the reply. True = the client sent a valid server cookie, so its address
   * is real.
   */
  #checkCookie({ query, response }: Transaction): boolean {
    if (query.cookieOctets === 0 || this.#cookies === undefined) return false
    return this.#cookies.serve(query, response, Math.floor(this.#clock.now() / 1000))
  }

  #compose({ query, response, out, outAt }: Transaction, bufsizeOctets: number): number {
    const limit = Math.min(replyLimit(query, bufsizeOctets), out.length)
    const { signer } = response
    if (signer === null) {
      if (outAt === -1) return compose(query, response, out, limit)
      return composeAt(query, response, outAt, limit)
    }
    const octets = compose(query, response, out, limit - signer.octets)
    return signer.sign(out, octets, Math.floor(this.#clock.now() / 1000))
  }
}

/** Returns PASS if the handler does not serve the query. @hot */
function serveSelected(
  { selects, handler }: PlannedLink,
  tx: Transaction,
): number | Promise<number> {
  return selects === undefined || selects(tx) ? handler.serve(tx) : PASS
}

/** Runs the links before number `reached` of a plan, last to first, on the reply in `tx`. @hot */
function finishLinks(
  tx: Transaction,
  plan: ChainPlan,
  reached: number,
  queryTraits: number,
  own: number,
): number {
  const traits = queryTraits | replyTraits(tx.response)
  const concerned = plan.replies & traits
  if (concerned === 0) return own
  if ((concerned & (Trait.Several | Trait.Records)) !== 0) tx.response.expand(tx.query)
  let status = own
  for (let i = reached - 1; i >= 0; i--) {
    const { link } = plan.links[i]!
    if (link !== undefined && (link.replies & traits) !== 0) status = link.after(tx, status)
  }
  return status
}

function finishLinksLater(
  tx: Transaction,
  plan: ChainPlan,
  reached: number,
  queryTraits: number,
  status: Promise<number>,
): Promise<number> {
  return status.then((late) => finishLinks(tx, plan, reached, queryTraits, late))
}

/** Makes the reply ask the client to retry over TCP, and no longer than its query. */
function truncate({ query, response }: Transaction): void {
  response.clear()
  response.truncated = true
  response.scopeBits = 0
  response.nsid = null
  response.reportAgent = null
  response.zoneLabels = -1
  response.edeCode = -1
  response.forceEdns = false
  // A client without a server cookie gets one over TCP.
  if (query.cookieOctets < WHOLE_COOKIE_OCTETS) response.serverCookieOctets = 0
}

/** Empties the sections. What explains the error (EDE, NSID, `error`) is kept. */
function clearForError(tx: Transaction, rcode: number): void {
  const response = tx.response
  response.clear()
  response.rcode = rcode
  response.authoritative = false
  response.authenticData = false
  response.truncated = false
  response.scopeBits = 0
  response.zoneLabels = -1
}
