import type { MetricsRegistry } from '../../base/telemetry/metrics.ts'
import type { Losses } from '../../plugin/server-counters.ts'

/** Exports what the process dropped. Values that it can't know are left out. */
export class LossMetrics {
  readonly #queries
  readonly #replies
  readonly #connections
  readonly #lines

  constructor(m: MetricsRegistry) {
    this.#queries = m.counter(
      'sextant_dns_dropped_queries_total',
      'Counter of queries dropped unanswered, by reason.',
      ['reason'],
    )
    this.#replies = m.counter(
      'sextant_dns_unsent_replies_total',
      'Counter of UDP replies that the kernel did not accept.',
    )
    this.#connections = m.counter(
      'sextant_dns_cut_connections_total',
      'Counter of TCP connections refused or cut, by reason.',
      ['reason'],
    )
    this.#lines = m.counter(
      'sextant_log_dropped_lines_total',
      'Counter of log lines that were lost because the output was too slow, or failed, as on a full disk.',
    )
  }

  /** The values are totals of the process, so they are set, not added. */
  show(losses: Losses): void {
    this.#queries.reset()
    this.#connections.reset()
    this.#replies.reset()
    this.#lines.reset()
    const queries = [
      ['overload', losses.overloaded],
      ['buffer', losses.unbuffered],
      ['late', losses.late],
    ] as const
    for (const [reason, count] of queries) {
      if (count !== undefined) this.#queries.inc({ reason }, count)
    }
    const connections = [
      ['limit', losses.refusedConnections],
      ['timeout', losses.timedOutConnections],
      ['unread', losses.overrunConnections],
      ['overload', losses.overloadedConnections],
      ['malformed', losses.malformedConnections],
    ] as const
    for (const [reason, count] of connections) {
      if (count !== undefined) this.#connections.inc({ reason }, count)
    }
    this.#replies.inc(losses.unsent ?? 0)
    this.#lines.inc(losses.lines ?? 0)
  }
}
