import type { MetricsRegistry } from '../../base/telemetry/metrics.ts'
import type { ReuseCounts } from '../../client/upstream/udp-sockets.ts'
import type { Upstream } from '../../client/upstream/upstream.ts'
import { printRcode } from '../../dns/iana/index.ts'
import type { ForwardCounts } from './forward.ts'
import type { ForwardUpstream } from './forward-upstream.ts'

/** CoreDNS's time buckets, in seconds. */
const SECONDS_BUCKETS = Array.from({ length: 16 }, (_, i) => 0.00025 * 2 ** i)
const PROXY = 'forward'

/** Durations of the replies of one upstream with one rcode, since the last scrape. */
interface Durations {
  readonly to: string
  readonly rcode: number
  readonly counts: Float64Array
  sum: number
}

/** Counts queries and replies of one `forward`, and copies the counts to the metrics page. */
export class ForwardMetrics implements ForwardCounts {
  maxConcurrentRejects = 0
  healthcheckBroken = 0
  readonly #durations = new Map<string, Durations>()
  /** Counts that the page has already, by name and index of the upstream. */
  readonly #taken = new Map<string, number>()

  reply({ address }: ForwardUpstream, rcode: number, ms: number): void {
    const key = `${address} ${rcode}`
    let durations = this.#durations.get(key)
    if (durations === undefined) {
      const counts = new Float64Array(SECONDS_BUCKETS.length + 1)
      durations = { to: address, rcode, counts, sum: 0 }
      this.#durations.set(key, durations)
    }
    const seconds = ms / 1000
    const bucket = SECONDS_BUCKETS.findIndex((bound) => seconds <= bound)
    durations.counts[bucket === -1 ? SECONDS_BUCKETS.length : bucket]! += 1
    durations.sum += seconds
  }

  /** Adds everything since the last call to the metrics. */
  collect(m: MetricsRegistry, upstreams: readonly Upstream[]): void {
    const rejects = m.counter(
      'coredns_forward_max_concurrent_rejects_total',
      'Counter of the number of queries rejected because the concurrent queries were at maximum.',
    )
    rejects.inc(this.#growth('rejects', this.maxConcurrentRejects))
    const broken = m.counter(
      'coredns_forward_healthcheck_broken_total',
      'Counter of the number of complete failures of the healthchecks.',
    )
    broken.inc(this.#growth('broken', this.healthcheckBroken))
    this.#addDurations(m)
    for (const [index, upstream] of upstreams.entries()) this.#addUpstream(m, upstream, index)
  }

  #addDurations(m: MetricsRegistry): void {
    const seconds = m.bulkHistogram(
      'coredns_proxy_request_duration_seconds',
      'Histogram of the time each request took.',
      SECONDS_BUCKETS,
    )
    for (const { to, rcode, counts, sum } of this.#durations.values()) {
      seconds.add({ proxy_name: PROXY, to, rcode: printRcode(rcode) }, counts, sum)
    }
    this.#durations.clear()
  }

  /** `index`: of the upstream. Two may have one address. */
  #addUpstream(m: MetricsRegistry, upstream: Upstream, index: number): void {
    const labels = { proxy_name: PROXY, to: upstream.address }
    const failures = m.counter(
      'coredns_proxy_healthcheck_failures_total',
      'Counter of the number of failed healthchecks.',
      Object.keys(labels),
    )
    failures.inc(labels, this.#growth(`failed ${index}`, upstream.failedChecks))
    const { isTls, udp, streams } = upstream
    if (!isTls) this.#addReuse(m, { ...labels, proto: 'udp' }, udp.counts, index)
    this.#addReuse(m, { ...labels, proto: isTls ? 'tcp-tls' : 'tcp' }, streams.counts, index)
  }

  #addReuse(
    m: MetricsRegistry,
    labels: Readonly<Record<'proxy_name' | 'to' | 'proto', string>>,
    { hits, misses }: ReuseCounts,
    index: number,
  ): void {
    const names = Object.keys(labels)
    const key = `${index} ${labels.proto}`
    m.counter(
      'coredns_proxy_conn_cache_hits_total',
      'Counter of connection cache hits per upstream and protocol.',
      names,
    ).inc(labels, this.#growth(`hits ${key}`, hits))
    m.counter(
      'coredns_proxy_conn_cache_misses_total',
      'Counter of connection cache misses per upstream and protocol.',
      names,
    ).inc(labels, this.#growth(`misses ${key}`, misses))
  }

  #growth(key: string, now: number): number {
    const before = this.#taken.get(key) ?? 0
    this.#taken.set(key, now)
    return now - before
  }
}
