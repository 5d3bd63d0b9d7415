import type { Counter, MetricsRegistry } from '../../base/telemetry/metrics.ts'
import type { AgentCounts } from '../../egress/agent/decision.ts'
import type { EgressAgent } from '../../egress/agent/egress-agent.ts'

/** Numbers of the enforcer since the start. */
export type EnforcerNumbers = Readonly<
  Record<'transactions' | 'failures' | 'elements' | 'resyncs' | 'repaired' | 'refused', number>
>

interface NodeMetricsParts {
  readonly agent: EgressAgent
  /** Undefined in a dry run. */
  readonly enforcerNumbers: (() => EnforcerNumbers) | undefined
  /** Numbers of one client have the label `endpoint`. */
  readonly countsEndpoints: boolean
}

type Labels = Readonly<Record<string, string>>

const AGENT_COUNTERS: readonly (readonly [keyof AgentCounts, string, string])[] = [
  [
    'removals',
    'sextant_fqdn_gc_deletions_total',
    'Addresses of names whose TTL ended, or above a limit.',
  ],
  ['answers', 'sextant_egress_answers_total', 'Answers with addresses that clients got.'],
  [
    'denied',
    'sextant_egress_denied_answer_addresses_total',
    'Addresses of answers that are never allowed.',
  ],
  ['zombieEvictions', 'sextant_egress_zombie_evictions_total', 'Zombies above a limit.'],
  ['dumps', 'sextant_egress_conntrack_dumps_total', 'Complete dumps of the connections.'],
  ['failedDumps', 'sextant_egress_conntrack_failed_dumps_total', 'Dumps that failed.'],
]

const ENFORCER_COUNTERS: readonly (readonly [keyof EnforcerNumbers, string, string])[] = [
  ['transactions', 'sextant_egress_nft_transactions_total', 'Transactions of nftables.'],
  ['failures', 'sextant_egress_nft_failures_total', 'Transactions of nftables that failed.'],
  ['elements', 'sextant_egress_nft_elements_total', 'Elements added, refreshed or removed.'],
  ['resyncs', 'sextant_egress_nft_resyncs_total', 'Times that the whole table was written.'],
  ['repaired', 'sextant_egress_nft_repaired_total', 'What others changed and was repaired.'],
  ['refused', 'sextant_egress_nft_refused_total', 'Elements refused because a set was full.'],
]

/** Exports the numbers of an agent until the returned function is called. */
export function exportNode(metrics: MetricsRegistry, parts: NodeMetricsParts): () => void {
  const { agent, enforcerNumbers, countsEndpoints } = parts
  const series = new Map<string, Series>()
  const report = (metric: Counter, name: string, now: number, labels: Labels = {}): void => {
    const key = `${name} ${Object.values(labels).join(' ')}`
    const known = series.get(key) ?? { metric, labels, exported: 0, isReported: true }
    if (!series.has(key)) addExporters(known, 1)
    series.set(key, known)
    metric.inc(labels, now - known.exported)
    known.exported = now
    known.isReported = true
  }
  const gauge = (name: string, help: string, now: number, labels?: Labels): void => {
    // A reload may begin or end to use the label.
    const labelNames = labels === undefined ? [] : ['endpoint']
    report(metrics.gauge(name, help, labelNames), name, now, labels)
  }
  const collect = (): void => {
    for (const one of series.values()) one.isReported = false
    for (const [key, name, help] of AGENT_COUNTERS) {
      report(metrics.counter(name, help), name, agent.counts[key])
    }
    const waits = 'sextant_egress_waits_total'
    const held = metrics.counter(waits, 'Replies that waited for the enforcer.')
    report(held, waits, agent.gate.held)
    const numbers = enforcerNumbers?.()
    for (const [key, name, help] of numbers === undefined ? [] : ENFORCER_COUNTERS) {
      report(metrics.counter(name, help), name, numbers![key])
    }
    gauge(
      'sextant_egress_clients',
      'Pods of this node that some policy selects.',
      agent.clientCount,
    )
    gauge('sextant_egress_rule_sets', 'Sets of rules that differ.', agent.profileCount)
    const sums = new Map<string, Sums>()
    for (const grants of agent.states()) {
      const { client, cache, nameCount, addressCount, grantCount } = grants
      const endpoint = countsEndpoints ? client.id : ''
      const sum = sums.get(endpoint) ?? { names: 0, ips: 0, zombies: 0, grants: 0 }
      sum.names += nameCount
      sum.ips += addressCount
      sum.zombies += cache.zombieCount
      sum.grants += grantCount
      sums.set(endpoint, sum)
    }
    if (sums.size === 0 && !countsEndpoints)
      sums.set('', { names: 0, ips: 0, zombies: 0, grants: 0 })
    for (const [endpoint, sum] of sums) {
      const labels: Labels = countsEndpoints ? { endpoint } : {}
      gauge('sextant_fqdn_active_names', 'Names that clients learned.', sum.names, labels)
      gauge('sextant_fqdn_active_ips', 'Addresses of these names.', sum.ips, labels)
      const help = 'Addresses that only open connections keep.'
      gauge('sextant_fqdn_alive_zombie_connections', help, sum.zombies, labels)
      gauge('sextant_egress_grants', 'Addresses that names allow.', sum.grants, labels)
    }
    gauge('sextant_fqdn_selectors', 'Selectors of the policies of clients.', countSelectors(agent))
    dropUnreported(series)
  }
  const stop = metrics.onCollect(collect)
  return () => {
    collect()
    stop()
    for (const one of series.values()) one.isReported = false
    dropUnreported(series)
  }
}

interface Sums {
  names: number
  ips: number
  zombies: number
  grants: number
}

interface Series {
  readonly metric: Counter
  readonly labels: Labels
  exported: number
  isReported: boolean
}

/** Removes gauges of what is gone. Counters stay, because a later agent continues them. */
function dropUnreported(series: Map<string, Series>): void {
  for (const [key, one] of series) {
    const { metric, labels, exported, isReported } = one
    if (isReported) continue
    series.delete(key)
    if (!('set' in metric)) continue
    const others = addExporters(one, -1)
    if (others > 0 || Object.keys(labels).length === 0) metric.inc(labels, -exported)
    else metric.remove(labels)
  }
}

/** How many agents export each series of a gauge: during a reload with other options, two do. */
const EXPORTERS = new WeakMap<Counter, Map<string, number>>()

/** Returns the new number. */
function addExporters({ metric, labels }: Series, change: 1 | -1): number {
  const counts = EXPORTERS.get(metric) ?? new Map<string, number>()
  EXPORTERS.set(metric, counts)
  const key = Object.values(labels).join(' ')
  const count = (counts.get(key) ?? 0) + change
  if (count === 0) counts.delete(key)
  else counts.set(key, count)
  return count
}

function countSelectors(agent: EgressAgent): number {
  const keys = new Set<string>()
  const seen = new Set<unknown>()
  for (const { rules } of agent.clients()) {
    // Clients share rules that are equal.
    if (seen.has(rules)) continue
    seen.add(rules)
    for (const tier of rules.lists.flat()) {
      for (const { names } of tier.rules) for (const { key } of names) keys.add(key)
    }
  }
  return keys.size
}
