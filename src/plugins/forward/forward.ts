import type { Clock } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import type { Timers } from '../../base/timers.ts'
import type { UpstreamQuestion } from '../../client/upstream/upstream-query.ts'
import { Rcode, RRType } from '../../dns/iana/index.ts'
import type { Message } from '../../dns/message/message.ts'
import { Protocol, type Query } from '../../dns/message/query.ts'
import type { Handler } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { ZoneSet } from '../../zone/lookup/zone-set.ts'
import { type Flight, Flights, hashQuestion } from './flights.ts'
import type { ForwardUpstream } from './forward-upstream.ts'
import { refusal, subnetOption, writeReply } from './reply.ts'
import type { Select } from './select.ts'
import { EVICTED, type Slots, TOO_LATE, type Waited, Waiter } from './slots.ts'

/** Longest time for one query, over all upstreams. */
const TOTAL_MS = 5000
/** Flags of a query that its upstream gets: RD, AD and CD. */
const PASSED_FLAGS = 0x0130

export interface ForwardOptions {
  readonly from: ZoneSet
  readonly except: ZoneSet
  readonly forceTcp: boolean
  readonly preferUdp: boolean
  readonly readTimeoutMs: number
  /** Maximum number of queries that wait; 0 = one limit for every `forward` without one. */
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

interface ForwardParts {
  /** Filled at startup. */
  readonly upstreams: readonly ForwardUpstream[]
  readonly select: Select
  readonly clock: Clock
  readonly timers: Timers
  readonly slots: Slots
  readonly counts: ForwardCounts
  /** Called with the upstream that a query was sent to last. */
  readonly onAsk: (tx: Transaction, upstream: ForwardUpstream) => void
}

/** Forwards queries to other servers. */
export class Forward implements Handler {
  readonly name = 'forward'
  readonly #next: Handler
  readonly #options: ForwardOptions
  readonly #parts: ForwardParts
  readonly #flights = new Flights()

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
    const waiter = new Waiter(tx.startedMs)
    if (!this.#parts.slots.enter(waiter, query)) return this.#refuse(tx)
    return this.#forward(tx, waiter)
  }

  #refuse({ response }: Transaction): number {
    this.#parts.counts.maxConcurrentRejects++
    response.error = `concurrent queries exceeded maximum ${this.#parts.slots.max}`
    return Rcode.REFUSED
  }

  #accepts(query: Query): boolean {
    const { from, except } = this.#options
    const zone = from.match(query)
    if (zone === -1) return false
    const isApex = from.zones[zone]!.length === query.qnameOctets
    return isApex || except.zones.length === 0 || except.match(query) === -1
  }

  async #forward(tx: Transaction, waiter: Waiter): Promise<number> {
    const flight = this.#board(tx)
    flight.add(waiter)
    const stop = tx.deadlineMs < flight.deadlineMs ? this.#endAt(tx.deadlineMs, waiter) : undefined
    let reply: Waited
    try {
      reply = await waiter.ended
    } finally {
      stop?.()
      waiter.free()
      this.#parts.slots.leave(waiter)
    }
    if (reply === EVICTED || reply === TOO_LATE) this.#flights.leave(flight)
    if (flight.upstream !== undefined) this.#parts.onAsk(tx, flight.upstream)
    if (reply === EVICTED) return this.#refuse(tx)
    if (typeof reply === 'string') {
      tx.response.error = reply
      return Rcode.SERVFAIL
    }
    // Only another `forward` has a chance to know better.
    if (this.#next.name === this.name && this.#passesOn(reply)) return await this.#next.serve(tx)
    tx.response.answeredBy = this.name
    return writeReply(tx, reply)
  }

  /** Returns the flight of an equal question, or begins one. */
  #board(tx: Transaction): Flight {
    const question = this.#question(tx.query)
    const known = this.#flights.find(question)
    if (known !== undefined) return known
    const overTcp = this.#usesTcp(tx.query) || this.#flights.isCrowded(question)
    const flight = this.#flights.add(question, this.#parts.clock.monotonic() + TOTAL_MS)
    this.#askAny(flight, tx.random, overTcp).then(
      (result) => {
        this.#flights.remove(flight)
        flight.land(result)
      },
      (error) => {
        this.#flights.remove(flight)
        flight.fail(error)
      },
    )
    return flight
  }

  #endAt(deadlineMs: number, waiter: Waiter): () => void {
    const { clock, timers } = this.#parts
    const leftMs = Math.max(0, deadlineMs - clock.monotonic())
    return timers.after(leftMs, () => waiter.end(TOO_LATE))
  }

  #passesOn({ rcode, answer }: Message): boolean {
    const { nextRcodes, nextOnNodata } = this.#options
    if (nextRcodes.has(rcode)) return true
    return nextOnNodata && rcode === Rcode.NOERROR && answer.length === 0
  }

  /** Returns a reply, or why no upstream gave one. Ends early if the flight is cancelled. */
  async #askAny(flight: Flight, random: Random, overTcp: boolean): Promise<Message | string> {
    const { maxConnectAttempts, failoverRcodes } = this.#options
    const { clock } = this.#parts
    const { deadlineMs } = flight
    const order = this.#order(random)
    if (order.length === 0) return 'no healthy proxies'
    const attempts = maxConnectAttempts || 2 * order.length
    let failure = ''
    let last: Message | undefined
    for (let i = 0; i < attempts; i++) {
      // A reply is better than none, so the last one with a rcode of `failover` is kept.
      if (last !== undefined && i >= order.length) break
      const timeoutMs = Math.min(this.#options.readTimeoutMs, deadlineMs - clock.monotonic())
      if (timeoutMs <= 0 || flight.cancellation.isCancelled) break
      const reply = await this.#askOne(flight, order[i % order.length]!, overTcp, timeoutMs)
      if (typeof reply === 'string') {
        failure = reply
        continue
      }
      if (!failoverRcodes.has(reply.rcode)) return reply
      last = reply
    }
    return last ?? (failure || TOO_LATE)
  }

  /** Returns a reply for the client, or the reason why no upstream gave one. */
  async #askOne(
    flight: Flight,
    upstream: ForwardUpstream,
    overTcp: boolean,
    timeoutMs: number,
  ): Promise<Message | string> {
    const { clock, counts } = this.#parts
    const { question, cancellation } = flight
    const startMs = clock.monotonic()
    flight.upstream = upstream
    const outcome = await upstream.ask(question, overTcp, timeoutMs, cancellation)
    if ('failure' in outcome) {
      // Also if the query was cancelled: in a flood, none may wait until it times out.
      upstream.check()
      return `${upstream.address}: ${outcome.failure}`
    }
    const { message } = outcome
    const reason = refusal(message, question)
    if (reason !== '') return `${upstream.address}: ${reason}`
    counts.reply(upstream, message.rcode, clock.monotonic() - startMs)
    return message
  }

  /** The upstreams to ask, first to last; none = all are down. */
  #order(random: Random): readonly ForwardUpstream[] {
    const { upstreams, select, counts } = this.#parts
    const order = select(upstreams, random)
    if (!order.some(({ isDown }) => isDown)) return order
    const healthy = order.filter(({ isDown }) => !isDown)
    if (healthy.length > 0) return healthy
    counts.healthcheckBroken++
    if (this.#options.failsFast) return []
    return [upstreams[random.below(upstreams.length)]!]
  }

  #usesTcp({ protocol }: Query): boolean {
    const { forceTcp, preferUdp } = this.#options
    return forceTcp || (protocol !== Protocol.Udp && !preferUdp)
  }

  #question(query: Query): UpstreamQuestion {
    return {
      name: query.qname.slice(0, query.qnameOctets),
      type: query.qtype,
      rrclass: query.qclass,
      hash: hashQuestion(query.suffixHash[0]!, query.qtype, query.qclass),
      flags: query.flags & PASSED_FLAGS,
      dnssecOk: query.dnssecOk,
      subnet: subnetOption(query),
      mixesCase: this.#options.mixesCase,
      hasEdns: true,
    }
  }
}
