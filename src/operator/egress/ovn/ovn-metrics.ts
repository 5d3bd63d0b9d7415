import type { MetricsRegistry } from '../../../base/telemetry/metrics.ts'

const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30]

/** Values as of now. */
interface OvnFacts {
  readonly isConnected: boolean
  readonly pending: number
  readonly addressSets: number
  readonly unclaimed: number
  readonly denied: number
}

export class OvnMetrics {
  readonly #transactions
  readonly #repairs
  readonly #commits

  /** `facts`: undefined while no session runs. */
  constructor(registry: MetricsRegistry, facts: () => OvnFacts | undefined) {
    this.#transactions = registry.counter(
      'sextant_ovn_transactions_total',
      'Transactions of OVN Northbound by result.',
      ['result'],
    )
    for (const result of ['committed', 'failed']) this.#transactions.inc({ result }, 0)
    this.#repairs = registry.counter(
      'sextant_ovn_repairs_total',
      'Address sets that were written again because they were changed or deleted by others.',
    )
    this.#commits = registry.histogram(
      'sextant_ovn_commit_seconds',
      'Time from a change of the addresses of a DNS name until its address sets are committed.',
      BUCKETS_SECONDS,
    )
    const connected = registry.gauge(
      'sextant_ovn_connected',
      '1 while connected to the leader of OVN Northbound, else 0.',
    )
    const pending = registry.gauge(
      'sextant_ovn_pending_names',
      'DNS names whose last change is not committed.',
    )
    const addressSets = registry.gauge('sextant_ovn_address_sets', 'Address sets of this owner.')
    const unclaimed = registry.gauge(
      'sextant_ovn_unclaimed_address_sets',
      'Address sets without a DNSNameResolver, which ACLs may still use.',
    )
    const denied = registry.gauge(
      'sextant_ovn_denied_addresses',
      'Addresses of DNSNameResolvers that are never allowed, and are in no address set.',
    )
    registry.onCollect(() => {
      const now = facts()
      connected.set(now?.isConnected === true ? 1 : 0)
      pending.set(now?.pending ?? 0)
      addressSets.set(now?.addressSets ?? 0)
      unclaimed.set(now?.unclaimed ?? 0)
      denied.set(now?.denied ?? 0)
    })
  }

  countTransaction(result: 'committed' | 'failed'): void {
    this.#transactions.inc({ result })
  }

  countRepair(): void {
    this.#repairs.inc()
  }

  observeCommit(seconds: number): void {
    this.#commits.observe(seconds)
  }
}
