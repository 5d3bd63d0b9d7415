import type { Counter, Gauge, MetricsRegistry } from '../../base/telemetry/metrics.ts'

/** Identifies an endpoint in a tier of a name and type. */
export interface EndpointLabels {
  readonly source: string
  readonly zone: string
  /** As in a zone file; `other` = all endpoints without a series of their own. */
  readonly owner: string
  readonly type: string
  readonly endpoint: string
  readonly tier: string
}

const NAMES = ['source', 'zone', 'owner', 'type', 'endpoint', 'tier']

/**
 * The series of endpoints on the metrics page, shared by all publishers of the process. The two
 * instances of a reload have the same series, so a counter continues. The last user removes a series.
 */
export class EndpointSeries {
  readonly #answers: Counter
  readonly #share: Gauge
  /** By key: number of users. */
  readonly #users = new Map<string, number>()

  constructor(metrics: MetricsRegistry) {
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

  /** Adds a user of the series, which starts at 0. `key`: `seriesKey` of the labels. */
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

  count(labels: EndpointLabels, growth: number): void {
    this.#answers.inc({ ...labels }, growth)
  }

  setShare(labels: EndpointLabels, share: number): void {
    this.#share.set({ ...labels }, share)
  }
}

export function seriesKey({ source, zone, owner, type, endpoint, tier }: EndpointLabels): string {
  return JSON.stringify([source, zone, owner, type, endpoint, tier])
}
