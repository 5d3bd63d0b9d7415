import type { Counter, MetricsRegistry } from '../../base/telemetry/metrics.ts'
import type { StatusSink } from '../../egress/sinks/status/status-sink.ts'
import { collectWhileServing } from '../../plugin/collect.ts'
import type { CounterSlots } from '../../plugin/counter-slots.ts'
import type { DirectivePart } from '../../plugin/description.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import { EgressCount } from './egressfirewall.ts'

/** Exports the counters of the handler. */
export function exportCounts(c: SetupContext, slots: CounterSlots): DirectivePart {
  const labels = ['server', 'zone', 'view'] as const
  const matched = c.metrics.counter(
    'sextant_egress_matched_queries_total',
    'Queries for addresses of names that an egress policy selects.',
    labels,
  )
  const denied = c.metrics.counter(
    'sextant_egress_denied_addresses_total',
    'Addresses in answers that are never granted.',
    labels,
  )
  return collectWhileServing(c, () => {
    slots.forEach((counts, slot) => {
      matched.inc({ ...slot }, counts.take(EgressCount.Matched))
      denied.inc({ ...slot }, counts.take(EgressCount.Denied))
    })
  })
}

type Labels = Readonly<Record<string, string>>
type SinkView = Pick<StatusSink<unknown>, 'plural' | 'counts' | 'gate' | 'pending' | 'size'>

/** Exports the numbers of sinks until the returned function is called. */
export function exportSinks(metrics: MetricsRegistry, sinks: readonly SinkView[]): () => void {
  const exported = new Map<string, number>()
  /** Adds the growth since the last time: followers of several clusters share the metrics. */
  const add = (metric: Counter, name: string, labels: Labels, now: number): void => {
    const key = `${name} ${Object.values(labels).join(' ')}`
    metric.inc(labels, now - (exported.get(key) ?? 0))
    exported.set(key, now)
  }
  const count = (name: string, help: string, labels: Labels, now: number): void => {
    add(metrics.counter(name, help, Object.keys(labels)), name, labels, now)
  }
  const gauge = (name: string, help: string, labels: Labels, now: number): void => {
    add(metrics.gauge(name, help, Object.keys(labels)), name, labels, now)
  }
  const collect = (isOver: boolean): void => {
    for (const { plural: resource, counts, gate, size, pending } of sinks) {
      const writes = { written: counts.written, conflict: counts.conflicts, failed: counts.failed }
      for (const [result, now] of Object.entries(writes)) {
        count(
          'sextant_egress_status_writes_total',
          'Writes of statuses, by result.',
          { resource, result },
          now,
        )
      }
      const { acknowledged, 'timed out': timed_out, failed } = gate.results
      for (const [result, now] of Object.entries({ acknowledged, timed_out, failed })) {
        count(
          'sextant_egress_gate_waits_total',
          'Replies that waited, by result.',
          { resource, result },
          now,
        )
      }
      const refused = { unacceptable: counts.unacceptable, full: counts.full }
      for (const [reason, now] of Object.entries(refused)) {
        const help = 'Lookups that are not written.'
        count('sextant_egress_refused_lookups_total', help, { resource, reason }, now)
      }
      const seconds = gate.waitedMs / 1000
      count(
        'sextant_egress_gate_wait_seconds_total',
        'Time that replies waited.',
        { resource },
        seconds,
      )
      gauge('sextant_egress_objects', 'Objects with a name.', { resource }, isOver ? 0 : size)
      const open = isOver ? 0 : pending
      gauge(
        'sextant_egress_pending_objects',
        'Objects with lookups not written yet.',
        { resource },
        open,
      )
    }
  }
  const stop = metrics.onCollect(() => collect(false))
  return () => {
    stop()
    // Without a scrape, no metric is needed.
    if (exported.size > 0) collect(true)
  }
}
