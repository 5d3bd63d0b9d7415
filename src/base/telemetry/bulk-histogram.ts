/** Label values by label name. */
export type Labels = Readonly<Record<string, string>>

interface Series {
  readonly labels: Labels
  /** Observations per bucket, not cumulated; the last entry is above every bound. */
  readonly counts: Float64Array
  sum: number
}

interface Sample {
  metricName: string
  labels: Record<string, string | number>
  value: number
}

/** Accepts observations by the bucket. */
export interface BulkAdder {
  /** Adds observations: `counts` has one entry per bucket and one for values above all buckets. */
  add(labels: Labels, counts: ArrayLike<number>, sum: number): void
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
    const key = Object.keys(labels)
      .sort()
      .map((name) => `${name}=${labels[name]}`)
      .join('\0')
    let series = this.#series.get(key)
    if (series === undefined) {
      series = { labels, counts: new Float64Array(this.#buckets.length + 1), sum: 0 }
      this.#series.set(key, series)
    }
    for (let i = 0; i <= this.#buckets.length; i++) series.counts[i]! += counts[i] ?? 0
    series.sum += sum
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
    return [...this.#series.values()].flatMap(({ labels, counts, sum }) => {
      let total = 0
      const samples: Sample[] = this.#buckets.map((bound, i) => {
        total += counts[i]!
        return {
          metricName: `${this.name}_bucket`,
          labels: { ...labels, le: bound },
          value: total,
        }
      })
      total += counts[this.#buckets.length]!
      samples.push(
        { metricName: `${this.name}_bucket`, labels: { ...labels, le: '+Inf' }, value: total },
        { metricName: `${this.name}_sum`, labels: { ...labels }, value: sum },
        { metricName: `${this.name}_count`, labels: { ...labels }, value: total },
      )
      return samples
    })
  }
}
