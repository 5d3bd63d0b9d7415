import type { MetricsRegistry } from '../../base/telemetry/metrics.ts'
import { VERSION } from '../../base/version.ts'
import { printRcode, Rcode } from '../../dns/iana/index.ts'
import { PROTOCOL_NAMES } from '../../dns/message/query.ts'
import type { SlotLabels } from '../../plugin/counter-slots.ts'
import type { BlockConfig } from '../../plugin/directive.ts'
import type { DroppedCounters, ServerCounters } from '../../plugin/server-counters.ts'
import type { TracedDuration, TracedDurations } from '../../plugin/traced-durations.ts'
import { LossMetrics } from './losses.ts'
import {
  FAMILIES,
  OCTETS_BUCKETS,
  type Prometheus,
  REQUEST_OCTETS,
  RESPONSE_OCTETS,
  SECONDS,
  SECONDS_BUCKETS,
  type TakenCounts,
  TYPE_LABELS,
} from './prometheus.ts'

const SLOT = ['server', 'zone', 'view']
/**
 * Zone label of queries that did not reach a chain. Without a final dot, so it is not the name of a
 * zone.
 */
const DROPPED = { zone: 'dropped', view: '' }

/** The metrics of CoreDNS's server, made from the counters of handlers. */
export class DnsMetrics implements TracedDurations {
  readonly #requests
  readonly #dnssecOk
  readonly #responses
  readonly #seconds
  readonly #requestOctets
  readonly #responseOctets
  readonly #panics
  readonly #ignored
  readonly #build
  readonly #enabled
  readonly #losses

  constructor(m: MetricsRegistry) {
    this.#requests = m.counter(
      'coredns_dns_requests_total',
      'Counter of DNS requests made per zone, protocol and family.',
      [...SLOT, 'proto', 'family', 'type'],
    )
    this.#dnssecOk = m.counter(
      'coredns_dns_do_requests_total',
      'Counter of DNS requests with DO bit set per zone.',
      SLOT,
    )
    this.#responses = m.counter(
      'coredns_dns_responses_total',
      'Counter of response status codes.',
      [...SLOT, 'rcode', 'plugin'],
    )
    this.#seconds = m.bulkHistogram(
      'coredns_dns_request_duration_seconds',
      'Histogram of the time (in seconds) each request took per zone.',
      SECONDS_BUCKETS,
    )
    this.#requestOctets = m.bulkHistogram(
      'coredns_dns_request_size_bytes',
      'Size of the request in bytes, as received.',
      OCTETS_BUCKETS,
    )
    this.#responseOctets = m.bulkHistogram(
      'coredns_dns_response_size_bytes',
      'Size of the returned response in bytes, before compression.',
      OCTETS_BUCKETS,
    )
    this.#panics = m.counter('coredns_panics_total', 'A metrics that counts the number of panics.')
    this.#ignored = m.counter(
      'sextant_dns_ignored_packets_total',
      'Counter of packets that get no reply: shorter than a header, or replies themselves.',
    )
    this.#build = m.gauge(
      'coredns_build_info',
      "A metric with a constant '1' value labeled by version, revision, and goversion.",
      ['version', 'revision', 'goversion'],
    )
    this.#enabled = m.gauge(
      'coredns_plugin_enabled',
      'A metric that indicates whether a plugin is enabled on per server and zone basis.',
      [...SLOT, 'name'],
    )
    this.#losses = new LossMetrics(m)
  }

  /** Adds the growth of a handler's counters since the last call. */
  takeFrom(handler: Prometheus): void {
    handler.takeCounts((taken, labels) => {
      this.#takeRequests(taken, labels)
      for (const { plugin, rcode, count } of taken.responses) {
        this.#responses.inc({ ...labels, rcode: printRcode(rcode), plugin }, count)
      }
      const seconds = SECONDS.take(taken.counts)
      this.#seconds.add({ ...labels }, seconds.buckets, seconds.sum)
      PROTOCOL_NAMES.forEach((proto, p) => {
        const asked = REQUEST_OCTETS[p]!.take(taken.counts)
        this.#requestOctets.add({ ...labels, proto }, asked.buckets, asked.sum)
        const sent = RESPONSE_OCTETS[p]!.take(taken.counts)
        this.#responseOctets.add({ ...labels, proto }, sent.buckets, sent.sum)
      })
    })
  }

  addTraced({ labels, seconds, traceId, atMs }: TracedDuration): void {
    this.#seconds.addExemplar({ ...labels }, seconds, traceId, atMs)
  }

  #takeRequests({ counts, dnssecOk }: TakenCounts, labels: SlotLabels): void {
    let index = 0
    for (const proto of PROTOCOL_NAMES) {
      for (const family of FAMILIES) {
        for (const type of TYPE_LABELS) {
          const count = counts.take(index++)
          if (count > 0) this.#requests.inc({ ...labels, proto, family, type }, count)
        }
      }
    }
    if (dnssecOk > 0) this.#dnssecOk.inc({ ...labels }, dnssecOk)
  }

  /**
   * Copies the counts of queries that did not reach a chain. They are totals, so they are set, not
   * added.
   */
  showServer(counters: ServerCounters): void {
    this.#panics.reset()
    this.#panics.inc(counters.panics)
    this.#ignored.reset()
    this.#ignored.inc(counters.ignored)
    this.#losses.show(counters.losses)
    for (const [server, counts] of counters.dropped) this.#showDropped(server, counts)
  }

  #showDropped(server: string, counts: DroppedCounters): void {
    const slot = { server, ...DROPPED }
    const byRcode: [number, number][] = [
      [Rcode.FORMERR, counts.formErr],
      [Rcode.NOTIMP, counts.notImp],
      [Rcode.BADVERS, counts.badVers],
      [Rcode.REFUSED, counts.refused],
    ]
    for (const [code, count] of byRcode) {
      if (count === 0) continue
      const labels = { ...slot, rcode: printRcode(code), plugin: '' }
      this.#responses.remove(labels)
      this.#responses.inc(labels, count)
    }
    for (const { proto, family, count } of counts.queries) {
      if (count === 0) continue
      const labels = { ...slot, proto, family: String(family), type: 'other' }
      this.#requests.remove(labels)
      this.#requests.inc(labels, count)
    }
  }

  showBuild(): void {
    this.#build.set({ version: VERSION, revision: '', goversion: process.version }, 1)
  }

  /** Exports the plugins of a server block, or removes them again. */
  showEnabled(block: BlockConfig, enabled: boolean): void {
    const hosts = block.listenHosts.length === 0 ? [''] : block.listenHosts
    for (const key of block.keys) {
      for (const host of hosts) {
        const printed = host.includes(':') ? `[${host}]` : host
        const server = `${key.scheme}://${printed}:${key.port}`
        for (const name of block.directives) {
          const labels = { server, zone: key.zoneText, view: block.viewName, name }
          if (enabled) this.#enabled.set(labels, 1)
          else this.#enabled.remove(labels)
        }
      }
    }
  }
}
