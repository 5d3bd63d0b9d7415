import { createRequire } from 'node:module'
import type * as Prom from 'prom-client'
import { type BulkAdder, BulkHistogram } from './bulk-histogram.ts'
import type { MetricFamily } from './open-metrics.ts'

/** Label values by label name. */
type Labels = Readonly<Record<string, string | number>>

export interface Counter {
  inc(value?: number): void
  inc(labels: Labels, value?: number): void
  remove(labels: Labels): void
  reset(): void
}

export interface Gauge extends Counter {
  set(value: number): void
  set(labels: Labels, value: number): void
}

export interface Histogram {
  observe(value: number): void
  observe(labels: Labels, value: number): void
}

/**
 * The metrics of the process, based on prom-client. No query calls prom-client: hot counters are in
 * typed arrays of their owner, which adds a `collect` hook to copy them at scrape time. prom-client
 * is loaded with the first metric: servers without metrics avoid loading some ninety modules.
 */
export class MetricsRegistry {
  #loaded: { readonly prom: typeof Prom; readonly registry: Prom.Registry } | undefined

  /** The counter of that name, made on first use; label names must agree between uses. */
  counter(name: string, help: string, labelNames: readonly string[] = []): Counter {
    const { prom, registry } = this.#load()
    const known = registry.getSingleMetric(name)
    if (known instanceof prom.Counter) return known
    return new prom.Counter({ name, help, labelNames: [...labelNames], registers: [registry] })
  }

  gauge(name: string, help: string, labelNames: readonly string[] = []): Gauge {
    const { prom, registry } = this.#load()
    const known = registry.getSingleMetric(name)
    if (known instanceof prom.Gauge) return known
    return new prom.Gauge({ name, help, labelNames: [...labelNames], registers: [registry] })
  }

  histogram(
    name: string,
    help: string,
    buckets: readonly number[],
    labelNames: readonly string[] = [],
  ): Histogram {
    const { prom, registry } = this.#load()
    const known = registry.getSingleMetric(name)
    if (known instanceof prom.Histogram) return known
    const options = { name, help, buckets: [...buckets], labelNames: [...labelNames] }
    return new prom.Histogram({ ...options, registers: [registry] })
  }

  /** As `histogram`, for owners that count in arrays and add whole buckets at each scrape. */
  bulkHistogram(name: string, help: string, buckets: readonly number[]): BulkAdder {
    const { registry } = this.#load()
    const known: unknown = registry.getSingleMetric(name)
    if (known instanceof BulkHistogram) return known
    const histogram = new BulkHistogram(name, help, buckets)
    // A registry needs only the name of a metric, and what to print.
    registry.registerMetric(histogram as unknown as Prom.Metric)
    return histogram
  }

  readonly #collectors = new Set<() => void>()

  /** Runs `collect` before every scrape. Returns a function that removes it. */
  onCollect(collect: () => void): () => void {
    this.#collectors.add(collect)
    return () => this.#collectors.delete(collect)
  }

  /** The Prometheus text format, version 0.0.4. */
  async print(): Promise<string> {
    for (const collect of this.#collectors) collect()
    return this.#load().registry.metrics()
  }

  /** The page for a client. `accept`: its header Accept. With OpenMetrics, the page has exemplars. */
  async page(accept: string): Promise<{ readonly contentType: string; readonly body: string }> {
    const { registry } = this.#load()
    const { OPEN_METRICS_TYPE, prefersOpenMetrics, printOpenMetrics } = await import(
      './open-metrics.ts'
    )
    if (!prefersOpenMetrics(accept)) {
      return { contentType: registry.contentType, body: await this.print() }
    }
    for (const collect of this.#collectors) collect()
    const families = await Promise.all(registry.getMetricsAsArray().map(readFamily))
    return { contentType: OPEN_METRICS_TYPE, body: printOpenMetrics(families) }
  }

  #load(): { readonly prom: typeof Prom; readonly registry: Prom.Registry } {
    if (this.#loaded === undefined) {
      // Loaded synchronously: import() would make every caller that makes a metric wait.
      const prom = createRequire(import.meta.url)('prom-client') as typeof Prom
      this.#loaded = { prom, registry: new prom.Registry() }
    }
    return this.#loaded
  }
}

/** prom-client's own printer of OpenMetrics changes the names of metrics for good. */
async function readFamily(metric: Prom.MetricObject): Promise<MetricFamily> {
  const own: unknown = metric
  if (own instanceof BulkHistogram) return own.getForPromString()
  return (own as { get(): Promise<MetricFamily> }).get()
}

/** For callers that set up directives and export no metrics: makes none, and loads nothing. */
class NoMetrics extends MetricsRegistry {
  override counter(): Counter {
    return NONE
  }

  override gauge(): Gauge {
    return NONE
  }

  override histogram(): Histogram {
    return NONE
  }

  override bulkHistogram(): BulkAdder {
    return NONE
  }
}

const NONE: Counter & Gauge & Histogram & BulkAdder = {
  inc() {},
  set() {},
  remove() {},
  reset() {},
  observe() {},
  add() {},
  addExemplar() {},
}

export const NO_METRICS: MetricsRegistry = new NoMetrics()
