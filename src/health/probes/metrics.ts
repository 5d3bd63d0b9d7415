import type { MetricsRegistry } from '../../base/telemetry/metrics.ts'
import type { ProbeResult, ProbeRunner } from './probe-runner.ts'
import { HEALTHS, type ProbeHealth } from './probe-state.ts'

const OUTCOMES: readonly ProbeResult['outcome']['kind'][] = ['healthy', 'unhealthy', 'skipped']
const BUCKETS_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
/** Maximum number of addresses that have a series of their own. Those that are down come first. */
const SERIES_MAX = 10_000

/** Probes that the metrics describe. */
interface MeasuredProbes {
  readonly runner: ProbeRunner
  /** `namespace/name` of the probe's record; '' = the probe has no record. */
  recordOf(id: string): string
}

type Labels = Readonly<Record<string, string>>

/** Returns a counter of probe attempts. `source`: label with the source of the records. */
export function attemptCounter(
  metrics: MetricsRegistry,
  source: string,
): (result: ProbeResult) => void {
  const attempts = metrics.counter('sextant_probe_looks_total', 'Probe attempts, by outcome.', [
    'source',
    'outcome',
  ])
  const seconds = metrics.histogram(
    'sextant_probe_duration_seconds',
    'Duration of probe attempts, without skipped ones.',
    BUCKETS_SECONDS,
    ['source'],
  )
  for (const outcome of OUTCOMES) attempts.inc({ source, outcome }, 0)
  return ({ outcome, seconds: taken }) => {
    attempts.inc({ source, outcome: outcome.kind })
    if (outcome.kind !== 'skipped') seconds.observe({ source }, taken)
  }
}

/**
 * Exports the state of the addresses at every scrape, until the returned function is called.
 * `dns_health_probe_counter` has upstream's meaning: active probes, by record.
 */
export function measureProbing(
  metrics: MetricsRegistry,
  source: string,
  probing: MeasuredProbes,
): () => void {
  const active = metrics.gauge('dns_health_probe_counter', 'Count of active probes.', [
    'dns_health_check_name',
    'dns_health_check_namespace',
    'dns_health_check_host',
  ])
  const byState = metrics.gauge('sextant_probes', 'Probes by the state of their address.', [
    'source',
    'state',
  ])
  const labels = ['source', 'record', 'address']
  const down = metrics.gauge('sextant_probe_down', '1 for an address that is down, else 0.', labels)
  const overdue = metrics.gauge(
    'sextant_probe_overdue_seconds',
    'Delay of the probe attempt that is most overdue.',
    ['source'],
  )
  // Other sources have their own series in the same gauges.
  let activeShown: Labels[] = []
  let downShown: Labels[] = []
  const clear = (): void => {
    for (const at of activeShown) active.remove(at)
    for (const at of downShown) down.remove(at)
    activeShown = []
    downShown = []
  }
  const stop = metrics.onCollect(() => {
    clear()
    const counts = new Map<ProbeHealth, number>(HEALTHS.map((health) => [health, 0]))
    const others: Labels[] = []
    for (const { probe, state } of probing.runner.states()) {
      counts.set(state.health, counts.get(state.health)! + 1)
      const record = probing.recordOf(probe.id)
      const [namespace = '', name = ''] = record.split('/')
      activeShown.push(labelsOf(namespace, name, probe.hostname))
      active.inc(activeShown.at(-1)!, 1)
      const isDown = state.health === 'down'
      const list = isDown ? downShown : others
      if (list.length < SERIES_MAX) list.push({ source, record, address: probe.address })
    }
    // Two probes of a record may have one address: that of the one that is down is set last.
    const downCount = downShown.length
    downShown.push(...others.slice(0, SERIES_MAX - downCount))
    for (const [i, at] of [...downShown.entries()].reverse()) down.set(at, i < downCount ? 1 : 0)
    for (const [state, count] of counts) byState.set({ source, state }, count)
    overdue.set({ source }, probing.runner.overdueMs / 1000)
  })
  return () => {
    stop()
    clear()
    for (const state of HEALTHS) byState.remove({ source, state })
    overdue.remove({ source })
  }
}

function labelsOf(namespace: string, name: string, host: string): Labels {
  return {
    dns_health_check_name: name,
    dns_health_check_namespace: namespace,
    dns_health_check_host: host,
  }
}
