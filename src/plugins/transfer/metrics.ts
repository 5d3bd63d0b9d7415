import type { MetricsRegistry } from '../../base/telemetry/metrics.ts'
import type { FinishedTransfer } from './transfer.ts'

/** Metric names are our own, since CoreDNS has no metrics for transfers. */
export class TransferMetrics {
  readonly #transfers
  readonly #octets
  readonly #refused
  readonly #sent
  readonly #failed

  constructor(metrics: MetricsRegistry) {
    const name = (rest: string): string => `coredns_transfer_${rest}`
    const labels = ['kind', 'result']
    const help = 'Outgoing zone transfers, complete or not.'
    this.#transfers = metrics.counter(name('out_total'), help, labels)
    this.#octets = metrics.counter(name('out_octets_total'), 'Octets of zone transfers.', ['kind'])
    this.#refused = metrics.counter(
      name('refused_total'),
      'Zone transfers that were refused over TCP.',
    )
    this.#sent = metrics.counter(name('notifies_sent_total'), 'NOTIFY messages sent.')
    const failed = 'NOTIFY messages without a reply after all attempts.'
    this.#failed = metrics.counter(name('notifies_failed_total'), failed)
  }

  count({ kind, octets, isWhole }: FinishedTransfer): void {
    this.#transfers.inc({ kind, result: isWhole ? 'whole' : 'broken' })
    this.#octets.inc({ kind }, octets)
  }

  countRefused(): void {
    this.#refused.inc()
  }

  get notifies(): { onSent: () => void; onFailed: () => void } {
    return { onSent: () => this.#sent.inc(), onFailed: () => this.#failed.inc() }
  }
}
