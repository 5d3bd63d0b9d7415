import { collectWhileServing } from '../../plugin/collect.ts'
import type { CounterSlots } from '../../plugin/counter-slots.ts'
import type { DirectivePart } from '../../plugin/description.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import { EgressCount } from './egress.ts'
import { REPLY_BUCKETS, type ReplyTimes } from './reply-times.ts'

/** Exports what the handler counts. */
export function exportCounts(
  c: SetupContext,
  slots: CounterSlots,
  times: ReplyTimes,
): DirectivePart {
  const labels = ['server', 'zone', 'view'] as const
  const counter = (name: string, help: string) => c.metrics.counter(name, help, labels)
  const metrics = [
    [
      EgressCount.Denied,
      counter('sextant_egress_denied_queries_total', 'Queries of clients that DNS rules deny.'),
    ],
    [
      EgressCount.Rejected,
      counter('sextant_fqdn_semaphore_rejected_total', 'Queries of clients above a limit.'),
    ],
    [
      EgressCount.TimedOut,
      counter(
        'sextant_proxy_datapath_update_timeout_total',
        'Replies whose addresses were not in force in time.',
      ),
    ],
    [
      EgressCount.Failed,
      counter('sextant_egress_failed_replies_total', 'Replies withheld because of a fault.'),
    ],
  ] as const
  const histogram = c.metrics.bulkHistogram(
    'sextant_proxy_upstream_reply_seconds',
    'Time of queries of clients, by part.',
    REPLY_BUCKETS,
  )
  return collectWhileServing(c, () => {
    slots.forEach((counts, slot) => {
      for (const [index, metric] of metrics) metric.inc({ ...slot }, counts.take(index))
    })
    times.moveTo(histogram)
  })
}
