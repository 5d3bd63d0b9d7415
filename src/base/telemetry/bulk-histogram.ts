import type { Exemplar } from './open-metrics.ts'

/** Label values by label name. */
export type Labels = Readonly<Record<string, string>>

interface Series {
  readonly labels: Labels
  /** Observations per bucket, not cumulated; the last entry is above every bound. */
  readonly counts: Float64Array
  sum: number
  /** The last exemplar of each bucket. */
  readonly exemplars: (Exemplar | undefined)[]
}

interface Sample {
  metricName: string
  labels: Record<string, string | number>
  value: number
  exemplar?: Exemplar | undefined
}

/** Accepts observations by the bucket. */
export interface BulkAdder {
  /** Adds observations: `counts` has one entry per bucket and one for values above all buckets. */
  add(labels: Labels, counts: ArrayLike<number>, sum: number): void
  /** Adds the trace of one of these observations, with its value and its time in milliseconds since the Unix epoch. */
  addExemplar(labels: Labels, value: number, traceId: string, atMs: number): void
}

/**
 * A histogram that accepts whole buckets at once. prom-client's own accepts one observation per
 * call. Ours counts in typed arrays and copies them at each scrape.
 */
export class BulkHistogram implements BulkAdder {
  readonly name: string
  readonly #help: string
  readonly #buckets: readonly number[]
  readonly #series = new Map<string, Series>()

  constructor(name: string, help: string, buckets: readonly number[]) {
    this.name = name
    this.#help = help
    this.#buckets = buckets
  }

  add(labels: Labels, counts: ArrayLike<number>, sum: number): void {
    const series = this.#seriesOf(labels)
    for (let i = 0; i <= this.#buckets.length; i++) series.counts[i]! += counts[i] ?? 0
    series.sum += sum
  }

  addExemplar(labels: Labels, value: number, traceId: string, atMs: number): void {
    const found = this.#buckets.findIndex((bound) => value <= bound)
    const exemplar = { labelSet: { trace_id: traceId }, value, timestamp: atMs / 1000 }
    this.#seriesOf(labels).exemplars[found === -1 ? this.#buckets.length : found] = exemplar
  }

  #seriesOf(labels: Labels): Series {
    const key = Object.keys(labels)
      .sort()
      .map((name) => `${name}=${labels[name]}`)
      .join('\0')
    const known = this.#series.get(key)
    if (known !== undefined) return known
    const counts = new Float64Array(this.#buckets.length + 1)
    const series = { labels, counts, sum: 0, exemplars: [] }
    this.#series.set(key, series)
    return series
  }

  /** The data for prom-client's text format and its JSON. */
  async getForPromString(): Promise<{
    name: string
    help: string
    type: string
    values: Sample[]
  }> {
    return { name: this.name, help: this.#help, type: 'histogram', values: this.#samples() }
  }

  #samples(): Sample[] {
    return [...this.#series.values()].flatMap(({ labels, counts, sum, exemplars }) => {
      let total = 0
      const samples: Sample[] = this.#buckets.map((bound, i) => {
        total += counts[i]!
        return {
          metricName: `${this.name}_bucket`,
          labels: { ...labels, le: bound },
          value: total,
          exemplar: exemplars[i],
        }
      })
      total += counts[this.#buckets.length]!
      samples.push(
        {
          metricName: `${this.name}_bucket`,
          labels: { ...labels, le: '+Inf' },
          value: total,
          exemplar: exemplars[this.#buckets.length],
        },
        { metricName: `${this.name}_sum`, labels: { ...labels }, value: sum },
        { metricName: `${this.name}_count`, labels: { ...labels }, value: total },
      )
      return samples
    })
  }
}
