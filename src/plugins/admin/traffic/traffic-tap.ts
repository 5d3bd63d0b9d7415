import type { Clock } from '../../../base/clock.ts'
import type { Random } from '../../../base/random.ts'
import type { OctetChannel } from '../../../base/telemetry/octet-channel.ts'
import type { CounterSlots } from '../../../plugin/counter-slots.ts'
import type { QueryTap } from '../../../plugin/query-tap.ts'
import { finishedMs } from '../../../plugin/status.ts'
import type { Transaction } from '../../../plugin/transaction.ts'
import { COLUMNS, LATENCY, latencyBucket, NO_REPLY, RCODES } from './columns.ts'
import { writeSample } from './sample.ts'

const PERIOD_MS = 1000
/** Samples per period that a thread aims at. */
const SAMPLES = 200
const GAP_MAX = 2 ** 24

/**
 * Counts the replies of a thread by rcode, and samples queries for their latency and name. A sample stands for the
 * queries since the one before. While there are few queries, each one is a sample. Gaps between samples are random:
 * clients send queries in patterns, such as A and AAAA in turn.
 */
export class TrafficTap implements QueryTap {
  readonly #clock: Clock
  readonly #slots: CounterSlots
  readonly #out: OctetChannel
  readonly #random: Random
  #counts: Float64Array | undefined
  /** Queries from the last sample to the next one, and how many of them are left. */
  #gap = 1
  #left = 1
  /** The mean of gaps. */
  #every = 1
  #startMs = 0
  #endMs = 0
  /** In this period: samples, and the queries that they stand for. */
  #samples = 0
  #queries = 0

  constructor(clock: Clock, slots: CounterSlots, out: OctetChannel, random: Random) {
    this.#clock = clock
    this.#slots = slots
    this.#out = out
    this.#random = random
    slots.length = COLUMNS
  }

  /** @hot */
  see(tx: Transaction, octets: number): void {
    const counts = this.#counts ?? this.#openCounts()
    const outcome = octets === 0 ? NO_REPLY : Math.min(tx.response.rcode, RCODES - 1)
    counts[outcome]! += 1
    this.#left--
    if (this.#left === 0) this.#sample(tx, outcome, counts)
    else if (tx.startedMs >= this.#endMs) this.#turn(tx.startedMs)
  }

  #openCounts(): Float64Array {
    this.#counts = this.#slots.at('', '', '')
    return this.#counts
  }

  /** @hot */
  #sample(tx: Transaction, outcome: number, counts: Float64Array): void {
    const weight = this.#gap
    const ms = finishedMs(tx, this.#clock) - tx.startedMs
    counts[LATENCY + latencyBucket(ms)]! += weight
    writeSample(this.#out, tx, outcome, weight)
    this.#gap = 0
    this.#queries += weight
    this.#samples++
    if (tx.startedMs >= this.#endMs) this.#turn(tx.startedMs)
    else if (this.#samples >= SAMPLES) this.#slowDown()
    this.#draw()
  }

  /** Begins a period. A gap from a time with more queries ends early. @hot */
  #turn(nowMs: number): void {
    const open = this.#gap - this.#left
    const rate = ((this.#queries + open) * PERIOD_MS) / (nowMs - this.#startMs)
    this.#every = Math.min(GAP_MAX, Math.max(1, Math.round(rate / SAMPLES)))
    this.#startMs = nowMs
    this.#endMs = nowMs + PERIOD_MS
    this.#samples = 0
    this.#queries = -open
    if (this.#left < 2 * this.#every) return
    this.#gap = open
    this.#draw()
  }

  /** The period has its samples: a flood that begins causes few more. @hot */
  #slowDown(): void {
    this.#every = Math.min(GAP_MAX, this.#every * 2)
    this.#samples /= 2
  }

  /** Draws how many queries follow up to the next sample. @hot */
  #draw(): void {
    this.#left = this.#every === 1 ? 1 : 1 + this.#random.below(2 * this.#every - 1)
    this.#gap += this.#left
  }
}
