import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { BulkHistogram } from './bulk-histogram.ts'

/**
 * The metrics of the process, on prom-client. Nothing of prom-client runs per query: hot counters
 * live in typed arrays of their owner, which adds a `collect` hook to copy them out at scrape time.
 */
export class MetricsRegistry {
  readonly #registry = new Registry()

  /** The counter of that name, made on first use; label names must agree between uses. */
  counter(name: string, help: string, labelNames: readonly string[] = []): Counter<string> {
    const known = this.#registry.getSingleMetric(name)
    if (known instanceof Counter) return known
    return new Counter({ name, help, labelNames: [...labelNames], registers: [this.#registry] })
  }

  gauge(name: string, help: string, labelNames: readonly string[] = []): Gauge<string> {
    const known = this.#registry.getSingleMetric(name)
    if (known instanceof Gauge) return known
    return new Gauge({ name, help, labelNames: [...labelNames], registers: [this.#registry] })
  }

  histogram(
    name: string,
    help: string,
    buckets: readonly number[],
    labelNames: readonly string[] = [],
  ): Histogram<string> {
    const known = this.#registry.getSingleMetric(name)
    if (known instanceof Histogram) return known
    const options = { name, help, buckets: [...buckets], labelNames: [...labelNames] }
    return new Histogram({ ...options, registers: [this.#registry] })
  }

  /** As `histogram`, for owners that count in arrays and add whole buckets when collected. */
  bulkHistogram(
    name: string,
    help: string,
    buckets: readonly number[],
    labelNames: readonly string[] = [],
  ): BulkHistogram {
    const known = this.#registry.getSingleMetric(name)
    if (known instanceof BulkHistogram) return known
    const options = { name, help, buckets: [...buckets], labelNames: [...labelNames] }
    const histogram = new BulkHistogram(options)
    this.#registry.registerMetric(histogram)
    return histogram
  }

  readonly #collectors = new Set<() => void>()

  /** Runs `collect` before every scrape; returns the function that takes it off again. */
  onCollect(collect: () => void): () => void {
    this.#collectors.add(collect)
    return () => this.#collectors.delete(collect)
  }

  /** The Prometheus text format, version 0.0.4. */
  async print(): Promise<string> {
    for (const collect of this.#collectors) collect()
    return this.#registry.metrics()
  }

  get contentType(): string {
    return this.#registry.contentType
  }
}
