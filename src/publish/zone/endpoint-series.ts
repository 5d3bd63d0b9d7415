import type { Counter, Gauge, MetricsRegistry } from '../../base/telemetry/metrics.ts'
import type { EndpointLabels, EndpointShare, EndpointSink } from './endpoint-sink.ts'

const NAMES = ['source', 'zone', 'owner', 'type', 'endpoint', 'tier']

/**
 * The series of endpoints on the metrics page, shared by all publishers of the process. The two
 * instances of a reload have the same series, so a counter continues. The last user removes a series.
 */
export class EndpointSeries implements EndpointSink {
  readonly #metrics: MetricsRegistry
  readonly #answers: Counter
  readonly #share: Gauge
  /** By key: number of users. */
  readonly #users = new Map<string, number>()

  constructor(metrics: MetricsRegistry) {
    this.#metrics = metrics
    this.#answers = metrics.counter(
      'sextant_kuadrant_endpoint_answers_total',
      'Times that an endpoint was chosen for an answer.',
      NAMES,
    )
    this.#share = metrics.gauge(
      'sextant_kuadrant_endpoint_share',
      'Share of the answers of its tier that an endpoint should have, 0 to 1.',
      NAMES,
    )
  }

  add(key: string, labels: EndpointLabels): void {
    const users = this.#users.get(key) ?? 0
    this.#users.set(key, users + 1)
    // A rate needs a first value.
    if (users === 0) this.#answers.inc({ ...labels }, 0)
  }

  remove(key: string, labels: EndpointLabels): void {
    const users = this.#users.get(key)! - 1
    if (users > 0) {
      this.#users.set(key, users)
      return
    }
    this.#users.delete(key)
    this.#answers.remove({ ...labels })
    this.#share.remove({ ...labels })
  }

  count(_key: string, labels: EndpointLabels, growth: number): void {
    this.#answers.inc({ ...labels }, growth)
  }

  setShare(_key: string, labels: EndpointLabels, { share }: EndpointShare): void {
    this.#share.set({ ...labels }, share)
  }

  onCollect(collect: () => void): () => void {
    return this.#metrics.onCollect(collect)
  }
}
