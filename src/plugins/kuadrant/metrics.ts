import type { SharedSource } from '../../record/manifests/shared-source.ts'
import type { MetricsRegistry } from '../../telemetry/metrics.ts'
import type { KuadrantZones } from './zones.ts'

const COMMIT_BUCKETS_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1, 10]

/** Where a block tells of its commits. */
export function commitHistogram(metrics: MetricsRegistry): (seconds: number) => void {
  const name = 'sextant_kuadrant_commit_duration_seconds'
  const help = 'Time from changed records to the published zones.'
  const histogram = metrics.histogram(name, help, COMMIT_BUCKETS_SECONDS)
  return (seconds) => histogram.observe(seconds)
}

/** How a block stands with its snapshot. */
export interface SnapshotState {
  readonly isServed: boolean
  /** Unix time of what the file holds; 0 = unknown. */
  readonly takenSeconds: number
  /** Of the file; 0 = unknown. */
  readonly octets: number
}

/** Shows that at every scrape, until the returned function is called. */
export function measureSnapshot(
  metrics: MetricsRegistry,
  path: string,
  state: () => SnapshotState,
): () => void {
  const labels = ['snapshot']
  const name = 'sextant_kuadrant_snapshot'
  const served = metrics.gauge(`${name}_served`, '1 while answers come from the snapshot.', labels)
  const taken = metrics.gauge(`${name}_timestamp_seconds`, 'When what it holds was so.', labels)
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
 * Shows the state of one block and its source at every scrape. The returned function ends that and
 * takes the series away; other blocks that show the same ones, as after a reload, set them again at
 * the next scrape.
 */
export function measure(
  metrics: MetricsRegistry,
  directory: string,
  shared: SharedSource,
  zones: KuadrantZones,
): () => void {
  const labels = ['source', 'zone', 'state']
  const records = metrics.gauge('sextant_kuadrant_records', 'DNSRecords by zone and state.', labels)
  const conflicts = metrics.gauge(
    'sextant_kuadrant_conflicts',
    'Names at which DNSRecords disagree.',
    ['source', 'zone'],
  )
  const serial = metrics.gauge('sextant_kuadrant_serial', 'SOA serial.', ['source', 'zone'])
  const badFiles = metrics.gauge(
    'sextant_kuadrant_bad_files',
    'Manifest files that could not be read or parsed: their last good state is served.',
    ['source'],
  )
  const refused = { source: directory, zone: '', state: 'refused' }
  const ignored = { source: directory, zone: '', state: 'ignored' }
  const stop = metrics.onCollect(() => {
    const { source } = shared
    for (const zone of zones.zones) {
      const at = { source: directory, zone: zone.text }
      records.set({ ...at, state: 'served' }, zone.records.recordCount)
      conflicts.set(at, zone.records.conflictCount)
      serial.set(at, zone.serial)
    }
    records.set(refused, source.refusedCount)
    records.set(ignored, shared.unclaimedCount)
    badFiles.set({ source: directory }, source.fileErrors().length)
  })
  return () => {
    stop()
    for (const zone of zones.zones) {
      const at = { source: directory, zone: zone.text }
      records.remove({ ...at, state: 'served' })
      conflicts.remove(at)
      serial.remove(at)
    }
    records.remove(refused)
    records.remove(ignored)
    badFiles.remove({ source: directory })
  }
}
