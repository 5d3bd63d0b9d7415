import type { Clock } from '../../base/clock.ts'
import type { Histogram, MetricsRegistry } from '../../base/telemetry/metrics.ts'
import type { ApiClient, ApiMethod, ApiResponse } from '../../kube/api.ts'
import { WrappedClient } from '../../kube/wrapped-client.ts'

/** The default buckets of Prometheus's clients, in seconds. */
const REQUEST_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
/** From 1 ms to 9 minutes. */
const PROGRAMMING_BUCKETS = Array.from({ length: 20 }, (_, i) => 0.001 * 2 ** i)

/** Returns the histogram of the times from a change of endpoints to answers with them. */
export function programmingDurations(metrics: MetricsRegistry): Histogram {
  return metrics.histogram(
    'coredns_kubernetes_dns_programming_duration_seconds',
    'Histogram of the time (in seconds) it took to program a dns instance.',
    PROGRAMMING_BUCKETS,
    ['service_kind'],
  )
}

/** Counts the requests of a client and measures the time to the head of each response. */
export class MeasuredClient extends WrappedClient {
  readonly #clock: Clock
  readonly #requests
  readonly #durations

  constructor(client: ApiClient, clock: Clock, metrics: MetricsRegistry) {
    super(client)
    this.#clock = clock
    this.#requests = metrics.counter(
      'coredns_kubernetes_rest_client_requests_total',
      'Number of HTTP requests, partitioned by status code, method, and host.',
      ['code', 'method', 'host'],
    )
    this.#durations = metrics.histogram(
      'coredns_kubernetes_rest_client_request_duration_seconds',
      'Request latency in seconds. Broken down by verb and host.',
      REQUEST_BUCKETS,
      ['verb', 'host'],
    )
  }

  protected override async around(
    method: ApiMethod,
    exchange: () => Promise<ApiResponse>,
  ): Promise<ApiResponse> {
    const startMs = this.#clock.monotonic()
    // As in client-go, for requests without a response.
    let code = '<error>'
    try {
      const response = await exchange()
      code = String(response.status)
      return response
    } finally {
      const host = hostOf(this.place)
      this.#durations.observe({ verb: method, host }, (this.#clock.monotonic() - startMs) / 1000)
      this.#requests.inc({ code, method, host })
    }
  }
}

function hostOf(place: string): string {
  return URL.canParse(place) ? new URL(place).host : ''
}
