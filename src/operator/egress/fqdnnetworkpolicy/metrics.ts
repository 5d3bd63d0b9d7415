import type { MetricsRegistry } from '../../../base/telemetry/metrics.ts'
import type { Answered } from '../../../client/ask.ts'
import { printRcode } from '../../../dns/iana/index.ts'
import type { AddressFamily } from '../../../dns/text/address.ts'

const RECORD_TYPES: Readonly<Record<AddressFamily, string>> = { 1: 'A', 2: 'AAAA' }

/** What a reconcile did with a NetworkPolicy. */
type ApplyResult = 'created' | 'updated' | 'unchanged' | 'failed'

/** Values as of now. */
interface FqdnFacts {
  readonly active: number
  readonly pending: number
  readonly names: number
  readonly addresses: number
  readonly servers: number
  readonly lagMs: number
  readonly evictions: number
}

/** Metrics of the controller of FQDNNetworkPolicies. Those that nais's controller also has use its names. */
export class FqdnMetrics {
  readonly #lookups
  readonly #results
  readonly #failures
  readonly #registry: MetricsRegistry

  constructor(registry: MetricsRegistry) {
    this.#registry = registry
    this.#lookups = registry.counter('domain_lookup_count', 'DNS queries for names of policies.', [
      'source',
      'domain',
      'record_type',
    ])
    this.#results = registry.counter(
      'network_policy_apply_result_count',
      'Reconciles of FQDNNetworkPolicies by what they did to the NetworkPolicy.',
      ['result'],
    )
    this.#failures = registry.counter(
      'sextant_fqdnnetworkpolicy_lookup_failures_total',
      'DNS queries for names of policies that failed, by rcode or `none` = no reply.',
      ['rcode'],
    )
  }

  countLookup(name: string, family: AddressFamily, answered: Answered): void {
    const { source, domain } = labelsOf(name)
    this.#lookups.inc({ source, domain, record_type: RECORD_TYPES[family] })
    const rcode = answered.kind === 'reply' ? answered.message.rcode : -1
    if (rcode === 0) return
    this.#failures.inc({ rcode: rcode === -1 ? 'none' : printRcode(rcode) })
  }

  /** No policy has the name any longer. */
  forgetName(name: string): void {
    for (const record_type of Object.values(RECORD_TYPES)) {
      this.#lookups.remove({ ...labelsOf(name), record_type })
    }
  }

  countResult(result: ApplyResult): void {
    this.#results.inc({ result })
  }

  /** Calls `read` at every scrape. The returned function ends that. */
  collectFrom(read: () => FqdnFacts): () => void {
    const gauge = (name: string, help: string, labels: readonly string[] = []) =>
      this.#registry.gauge(`sextant_fqdnnetworkpolicy_${name}`, help, labels)
    const policies = gauge('policies', 'FQDNNetworkPolicies by state.', ['state'])
    const names = gauge('names', 'Names of FQDNNetworkPolicies.')
    const addresses = gauge('addresses', 'Addresses of these names.')
    const servers = gauge('dns_servers', 'DNS servers that are asked.')
    const lag = gauge('lookup_lag_seconds', 'Time since the lookup that waits longest was due.')
    const evictions = gauge('evictions', 'Addresses dropped because there were too many.')
    return this.#registry.onCollect(() => {
      const facts = read()
      policies.set({ state: 'Active' }, facts.active)
      policies.set({ state: 'Pending' }, facts.pending)
      names.set(facts.names)
      addresses.set(facts.addresses)
      servers.set(facts.servers)
      lag.set(facts.lagMs / 1000)
      evictions.set(facts.evictions)
    })
  }
}

/** nais's controller has other sources too: its cache. */
function labelsOf(name: string) {
  return { source: 'fresh', domain: name.replace(/(?<=.)\.$/, '') }
}
