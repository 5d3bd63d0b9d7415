import type { Clock } from '../../base/clock.ts'
import type { Outcome, UpstreamQuestion } from '../../client/upstream/upstream-query.ts'
import { Rcode, RRType } from '../../dns/iana/index.ts'
import type { Message } from '../../dns/message/message.ts'
import { Protocol, type Query } from '../../dns/message/query.ts'
import type { Handler } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { ZoneSet } from '../../zone/lookup/zone-set.ts'
import { refusal, subnetOption, writeReply } from './reply.ts'
import type { Select } from './select.ts'

/** Longest time for one query, over all upstreams. */
const TOTAL_MS = 5000
/** Flags of a query that its upstream gets: RD, AD and CD. */
const PASSED_FLAGS = 0x0130

/** A server to forward to. */
export interface ForwardUpstream {
  readonly address: string
  readonly isDown: boolean
  ask(question: UpstreamQuestion, overTcp: boolean, timeoutMs: number): Promise<Outcome>
  /** Starts checks of its health, which end when it replies. */
  check(): void
}

export interface ForwardOptions {
  readonly from: ZoneSet
  readonly except: ZoneSet
  readonly forceTcp: boolean
  readonly preferUdp: boolean
  readonly readTimeoutMs: number
  /** Maximum number of queries in flight; 0 = no limit. */
  readonly maxConcurrent: number
  /** Maximum number of attempts for one query; 0 = two for each upstream. */
  readonly maxConnectAttempts: number
  /** Replies for which the next upstream is asked. */
  readonly failoverRcodes: ReadonlySet<number>
  /** Replies for which the next `forward` of the block is asked. */
  readonly nextRcodes: ReadonlySet<number>
  readonly nextOnNodata: boolean
  /** If all upstreams are down: true = SERVFAIL, false = ask a random one. */
  readonly failsFast: boolean
  readonly mixesCase: boolean
}

/** Counts queries and replies of one `forward`. */
export interface ForwardCounts {
  maxConcurrentRejects: number
  healthcheckBroken: number
  reply(upstream: ForwardUpstream, rcode: number, ms: number): void
}

export interface ForwardParts {
  /** Filled at startup. */
  readonly upstreams: readonly ForwardUpstream[]
  readonly select: Select
  readonly clock: Clock
  readonly counts: ForwardCounts
  /** Called with the upstream that a query is sent to. */
  readonly onAsk: (tx: Transaction, upstream: ForwardUpstream) => void
}

/** Forwards queries to other servers. */
export class Forward implements Handler {
  readonly name = 'forward'
  readonly #next: Handler
  readonly #options: ForwardOptions
  readonly #parts: ForwardParts
  #inFlight = 0

  constructor(next: Handler, options: ForwardOptions, parts: ForwardParts) {
    this.#next = next
    this.#options = options
    this.#parts = parts
  }

  serve(tx: Transaction): number | Promise<number> {
    const { query, response } = tx
    if (!this.#accepts(query)) return this.#next.serve(tx)
    if (query.qtype === RRType.AXFR || query.qtype === RRType.IXFR) {
      response.error = 'zone transfers are not forwarded'
      return Rcode.REFUSED
    }
    const { maxConcurrent } = this.#options
    if (maxConcurrent > 0 && this.#inFlight >= maxConcurrent) {
      this.#parts.counts.maxConcurrentRejects++
      response.error = `concurrent queries exceeded maximum ${maxConcurrent}`
      return Rcode.REFUSED
    }
    return this.#forward(tx)
  }

  #accepts(query: Query): boolean {
    const { from, except } = this.#options
    const zone = from.match(query)
    if (zone === -1) return false
    const isApex = from.zones[zone]!.length === query.qnameOctets
    return isApex || except.zones.length === 0 || except.match(query) === -1
  }

  async #forward(tx: Transaction): Promise<number> {
    this.#inFlight++
    try {
      const reply = await this.#askAny(tx)
      if (typeof reply === 'string') {
        tx.response.error = reply
        return Rcode.SERVFAIL
      }
      // Only another `forward` has a chance to know better.
      if (this.#next.name === this.name && this.#passesOn(reply)) return await this.#next.serve(tx)
      tx.response.answeredBy = this.name
      return writeReply(tx, reply)
    } finally {
      this.#inFlight--
    }
  }

  #passesOn({ rcode, answer }: Message): boolean {
    const { nextRcodes, nextOnNodata } = this.#options
    if (nextRcodes.has(rcode)) return true
    return nextOnNodata && rcode === Rcode.NOERROR && answer.length === 0
  }

  /** Returns a reply, or why no upstream gave one. */
  async #askAny(tx: Transaction): Promise<Message | string> {
    const { maxConnectAttempts, failoverRcodes } = this.#options
    const { clock, counts } = this.#parts
    const order = this.#order(tx)
    if (order.length === 0) return 'no healthy proxies'
    const question = this.#question(tx.query)
    const overTcp = this.#usesTcp(tx.query)
    const deadlineMs = Math.min(clock.monotonic() + TOTAL_MS, tx.deadlineMs)
    const attempts = maxConnectAttempts || 2 * order.length
    let failure = ''
    let last: Message | undefined
    for (let i = 0; i < attempts; i++) {
      // A reply is better than none, so the last one with a rcode of `failover` is kept.
      if (last !== undefined && i >= order.length) break
      const startMs = clock.monotonic()
      const timeoutMs = Math.min(this.#options.readTimeoutMs, deadlineMs - startMs)
      if (timeoutMs <= 0) break
      const upstream = order[i % order.length]!
      this.#parts.onAsk(tx, upstream)
      const outcome = await upstream.ask(question, overTcp, timeoutMs)
      failure = 'failure' in outcome ? outcome.failure : refusal(outcome.message, question)
      if ('failure' in outcome || failure !== '') {
        failure = `${upstream.address}: ${failure}`
        if ('failure' in outcome) upstream.check()
        continue
      }
      const { message } = outcome
      counts.reply(upstream, message.rcode, clock.monotonic() - startMs)
      if (!failoverRcodes.has(message.rcode)) return message
      last = message
    }
    return last ?? (failure || 'no upstream replied in time')
  }

  /** The upstreams to ask, first to last; none = all are down. */
  #order(tx: Transaction): readonly ForwardUpstream[] {
    const { upstreams, select, counts } = this.#parts
    const order = select(upstreams, tx.random)
    if (!order.some(({ isDown }) => isDown)) return order
    const healthy = order.filter(({ isDown }) => !isDown)
    if (healthy.length > 0) return healthy
    counts.healthcheckBroken++
    if (this.#options.failsFast) return []
    return [upstreams[tx.random.below(upstreams.length)]!]
  }

  #usesTcp({ protocol }: Query): boolean {
    const { forceTcp, preferUdp } = this.#options
    return forceTcp || (protocol === Protocol.Tcp && !preferUdp)
  }

  #question(query: Query): UpstreamQuestion {
    return {
      name: query.qname.slice(0, query.qnameOctets),
      type: query.qtype,
      rrclass: query.qclass,
      flags: query.flags & PASSED_FLAGS,
      dnssecOk: query.dnssecOk,
      subnet: subnetOption(query),
      mixesCase: this.#options.mixesCase,
      hasEdns: true,
    }
  }
}
