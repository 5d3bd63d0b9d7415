import type { MetricsRegistry } from '../../base/telemetry/metrics.ts'
import type { OwnedSource } from '../../sources/owned-source.ts'
import type { FollowedCluster } from '../../sources/source.ts'
import { OPEN } from '../../steering/rules.ts'
import { ALL_DOWN_KINDS, type AllDownKind, type DownSet, kindOf } from '../build/all-down.ts'
import type { OutSets } from '../build/out-sets.ts'
import type { PublishedZones } from './zones.ts'

const COMMIT_BUCKETS_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1, 10]

export function commitHistogram(metrics: MetricsRegistry): (seconds: number) => void {
  const name = 'sextant_kuadrant_commit_duration_seconds'
  const help = 'Time from changed records to the published zones.'
  const histogram = metrics.histogram(name, help, COMMIT_BUCKETS_SECONDS)
  return (seconds) => histogram.observe(seconds)
}

export interface SnapshotState {
  readonly isServed: boolean
  /** Unix time of the data in the file; 0 = unknown. */
  readonly takenSeconds: number
  /** Size of the file; 0 = unknown. */
  readonly octets: number
}

/** Exports the snapshot state at every scrape, until the returned function is called. */
export function measureSnapshot(
  metrics: MetricsRegistry,
  path: string,
  state: () => SnapshotState,
): () => void {
  const labels = ['snapshot']
  const name = 'sextant_kuadrant_snapshot'
  const served = metrics.gauge(`${name}_served`, '1 while answers come from the snapshot.', labels)
  const taken = metrics.gauge(
    `${name}_timestamp_seconds`,
    'Time of the state in the snapshot.',
    labels,
  )
  const octets = metrics.gauge(`${name}_octets`, 'Size of the snapshot.', labels)
  const at = { snapshot: path }
  const stop = metrics.onCollect(() => {
    const now = state()
    served.set(at, now.isServed ? 1 : 0)
    taken.set(at, now.takenSeconds)
    octets.set(at, now.octets)
  })
  return () => {
    stop()
    for (const gauge of [served, taken, octets]) gauge.remove(at)
  }
}

/**
 * Exports the state of some zones and their source at every scrape. The returned function stops that
 * and removes the series. Other publishers that export the same series, as after a reload, set them
 * again at the next scrape.
 */
export function measure(
  metrics: MetricsRegistry,
  name: string,
  owned: OwnedSource,
  zones: PublishedZones,
): () => void {
  const labels = ['source', 'zone', 'state']
  const records = metrics.gauge('sextant_kuadrant_records', 'DNSRecords by zone and state.', labels)
  const conflicts = metrics.gauge(
    'sextant_kuadrant_conflicts',
    'Names with conflicts between DNSRecords.',
    ['source', 'zone'],
  )
  const ignored = metrics.gauge(
    'sextant_kuadrant_health_ignored',
    'Names and types that are served although all their endpoints are down or drained.',
    ['source', 'zone'],
  )
  const drained = metrics.gauge('sextant_kuadrant_drained', 'Endpoints that are drained.', [
    'source',
    'zone',
  ])
  const outGauges = gaugesOfOut(metrics)
  const serial = metrics.gauge('sextant_kuadrant_serial', 'SOA serial.', ['source', 'zone'])
  const badFiles = metrics.gauge(
    'sextant_kuadrant_bad_files',
    'Manifest files that could not be read or parsed: their last valid state is served.',
    ['source'],
  )
  const refused = { source: name, zone: '', state: 'refused' }
  const unowned = { source: name, zone: '', state: 'ignored' }
  const stop = metrics.onCollect(() => {
    const { source } = owned
    for (const zone of zones.zones) {
      const at = { source: name, zone: zone.text }
      records.set({ ...at, state: 'served' }, zone.records.recordCount)
      conflicts.set(at, zone.records.conflicts.count)
      const { out } = zone.records
      ignored.set(at, countOf(OPEN, out.allDown))
      outGauges.set(at, out)
      drained.set(at, out.drainedCount)
      serial.set(at, zone.serial)
    }
    records.set(refused, source.refusedCount)
    records.set(unowned, owned.unownedCount)
    badFiles.set({ source: name }, source.badFileCount)
  })
  return () => {
    stop()
    for (const zone of zones.zones) {
      const at = { source: name, zone: zone.text }
      records.remove({ ...at, state: 'served' })
      conflicts.remove(at)
      ignored.remove(at)
      outGauges.remove(at)
      drained.remove(at)
      serial.remove(at)
    }
    records.remove(refused)
    records.remove(unowned)
    badFiles.remove({ source: name })
  }
}

type ZoneLabels = { readonly source: string; readonly zone: string }

/** The gauges of sets and failover lists without an endpoint in service. */
function gaugesOfOut(metrics: MetricsRegistry): {
  readonly set: (at: ZoneLabels, out: Pick<OutSets, 'allDown' | 'exhausted'>) => void
  readonly remove: (at: ZoneLabels) => void
} {
  const allDown = metrics.gauge(
    'sextant_kuadrant_all_down',
    'Names and types whose endpoints are all down or drained, by the policy in force.',
    ['source', 'zone', 'policy'],
  )
  const exhausted = metrics.gauge(
    'sextant_kuadrant_failover_exhausted',
    'Names and types with failover lists whose endpoints are all down or drained, by the policy in force.',
    ['source', 'zone', 'policy'],
  )
  const set = (at: ZoneLabels, out: Pick<OutSets, 'allDown' | 'exhausted'>): void => {
    for (const policy of ALL_DOWN_KINDS) {
      allDown.set({ ...at, policy }, countOf(policy, out.allDown))
      exhausted.set({ ...at, policy }, countOf(policy, out.exhausted))
    }
  }
  const remove = (at: ZoneLabels): void => {
    for (const policy of ALL_DOWN_KINDS) {
      allDown.remove({ ...at, policy })
      exhausted.remove({ ...at, policy })
    }
  }
  return { set, remove }
}

function countOf(kind: AllDownKind, sets: readonly DownSet[]): number {
  return sets.filter(({ allDown }) => kindOf(allDown) === kind).length
}

/** Exports the state of a cluster's watches, until the returned function is called. */
export function measureWatches(
  metrics: MetricsRegistry,
  name: string,
  cluster: FollowedCluster,
): () => void {
  const age = metrics.gauge(
    'sextant_kuadrant_source_age_seconds',
    'Age of the records while the watch is broken; 0 while it works.',
    ['source'],
  )
  const labels = ['source', 'watch']
  const up = metrics.gauge('sextant_kuadrant_watch_up', '1 while the watch works.', labels)
  const lists = metrics.gauge('sextant_kuadrant_watch_lists', 'Lists since the start.', labels)
  const failures = metrics.gauge(
    'sextant_kuadrant_watch_failures',
    'Failed attempts since the start, by HTTP status; 0 = no usable answer.',
    [...labels, 'status'],
  )
  const stop = metrics.onCollect(() => {
    age.set({ source: name }, cluster.ageMs / 1000)
    for (const { what, isFollowing, counts } of cluster.watches) {
      const at = { source: name, watch: what }
      up.set(at, isFollowing ? 1 : 0)
      lists.set(at, counts.lists)
      for (const [status, count] of counts.failures) failures.set({ ...at, status }, count)
    }
  })
  return () => {
    stop()
    age.remove({ source: name })
    for (const { what, counts } of cluster.watches) {
      const at = { source: name, watch: what }
      up.remove(at)
      lists.remove(at)
      for (const status of counts.failures.keys()) failures.remove({ ...at, status })
    }
  }
}
