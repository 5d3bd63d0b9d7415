import type { Clock } from '../../base/clock.ts'
import type { OctetChannel } from '../../base/telemetry/octet-channel.ts'
import type { CounterSlots } from '../../plugin/counter-slots.ts'
import type { QueryTap } from '../../plugin/query-tap.ts'
import { finishedMs } from '../../plugin/status.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { createId, type Sample, sendEntry, type TraceId } from './entry.ts'
import type { Sampler } from './sampler.ts'
import type { TraceIds } from './trace-ids.ts'

interface TraceParts {
  readonly clock: Clock
  /** As Math.random. */
  readonly random: () => number
  readonly sampler: Sampler
  readonly ids: TraceIds
  /** To the thread that exports spans. */
  readonly out: OctetChannel
  /** One counter: sampled queries for which there was no room. */
  readonly lost: CounterSlots
}

/** Sends an entry of each sampled query. */
export class TraceTap implements QueryTap {
  readonly #parts: TraceParts
  readonly #sampler: Sampler
  /** Those of the query that is seen. */
  readonly #id: TraceId
  readonly #sample: Sample
  /** True: `ids` has the sampled queries. */
  isEarly = false

  constructor(parts: TraceParts) {
    this.#parts = parts
    this.#sampler = parts.sampler
    this.#id = createId(parts.random)
    this.#sample = { id: this.#id, isReplied: false, startMs: 0, durationMs: 0 }
  }

  /** @hot */
  see(tx: Transaction, octets: number): void {
    if (this.isEarly) this.#seeEarly(tx, octets)
    else if (this.#sampler.isNext()) this.#send(tx, octets, createId(this.#parts.random, this.#id))
  }

  #seeEarly(tx: Transaction, octets: number): void {
    const id = this.#parts.ids.take(tx)
    if (id !== undefined) this.#send(tx, octets, id)
  }

  #send(tx: Transaction, octets: number, id: TraceId): void {
    const { clock, out, lost } = this.#parts
    const durationMs = finishedMs(tx, clock) - tx.startedMs
    // The query has just ended: the wall clock counts whole milliseconds only.
    const sample = this.#sample
    sample.id = id
    sample.isReplied = octets > 0 || tx.stream !== undefined
    sample.startMs = clock.now() - durationMs
    sample.durationMs = durationMs
    if (!sendEntry(out, tx, sample)) lost.of(tx)[0]! += 1
  }
}
