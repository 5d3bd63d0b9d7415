import type { BulkAdder } from '../../base/telemetry/bulk-histogram.ts'

/** What became of a query, as Cilium names it. */
type ReplyResult = 'allow' | 'denied' | 'proxyErr'

/** A part of the time between a query and its reply, as Cilium names it. */
type ReplyScope = 'policyCheckTime' | 'upstreamTime' | 'dataplaneTime' | 'totalTime'

/** Upper bounds, in seconds. */
export const REPLY_BUCKETS: readonly number[] = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
]

interface Series {
  readonly error: ReplyResult
  readonly scope: ReplyScope
  readonly counts: Float64Array
  sumSeconds: number
}

/** Durations of the queries of clients. Counts in arrays, and copies them at each scrape. */
export class ReplyTimes {
  readonly #series: Series[] = []

  observe(error: ReplyResult, scope: ReplyScope, ms: number): void {
    const series = this.#of(error, scope)
    const seconds = ms / 1000
    let bucket = 0
    while (bucket < REPLY_BUCKETS.length && seconds > REPLY_BUCKETS[bucket]!) bucket++
    series.counts[bucket]! += 1
    series.sumSeconds += seconds
  }

  /** Moves the observations since the last call. */
  moveTo(histogram: BulkAdder): void {
    for (const series of this.#series) {
      const { error, scope, counts, sumSeconds } = series
      histogram.add({ error, protocol_l7: 'dns', scope }, counts, sumSeconds)
      counts.fill(0)
      series.sumSeconds = 0
    }
  }

  #of(error: ReplyResult, scope: ReplyScope): Series {
    for (const one of this.#series) if (one.error === error && one.scope === scope) return one
    const counts = new Float64Array(REPLY_BUCKETS.length + 1)
    const series: Series = { error, scope, counts, sumSeconds: 0 }
    this.#series.push(series)
    return series
  }
}
