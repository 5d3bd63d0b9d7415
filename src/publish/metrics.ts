import type { Clock } from '../base/clock.ts'
import type { PeerCache } from '../peering/cache/peer-cache.ts'
import type { PeerDisputes } from '../peering/merged-source.ts'
import { labelsOf, type PeerStatus } from '../peering/peer-status.ts'
import type { KubernetesSource } from '../sources/kubernetes/kubernetes-source.ts'
import type { RefCountedSource } from '../sources/ref-counted-source.ts'
import type { MetricsRegistry } from '../telemetry/metrics.ts'
import type { KuadrantZones } from './zones.ts'

const COMMIT_BUCKETS_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1, 10]

/** Returns the function that records the duration of a block's commits. */
export function commitHistogram(metrics: MetricsRegistry): (seconds: number) => void {
  const name = 'sextant_kuadrant_commit_duration_seconds'
  const help = 'Time from changed records to the published zones.'
  const histogram = metrics.histogram(name, help, COMMIT_BUCKETS_SECONDS)
  return (seconds) => histogram.observe(seconds)
}

/** State of a block's snapshot. */
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
 * Exports the state of one block and its source at every scrape. The returned function stops that
 * and removes the series. Other blocks that export the same series, as after a reload, set them
 * again at the next scrape.
 */
export function measure(
  metrics: MetricsRegistry,
  name: string,
  shared: RefCountedSource,
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
  const refused = { source: name, zone: '', state: 'refused' }
  const ignored = { source: name, zone: '', state: 'ignored' }
  const stop = metrics.onCollect(() => {
    const { source } = shared
    for (const zone of zones.zones) {
      const at = { source: name, zone: zone.text }
      records.set({ ...at, state: 'served' }, zone.records.recordCount)
      conflicts.set(at, zone.records.conflictCount)
      serial.set(at, zone.serial)
    }
    records.set(refused, source.refusedCount)
    records.set(ignored, shared.unownedCount)
    badFiles.set({ source: name }, source.badFileCount)
  })
  return () => {
    stop()
    for (const zone of zones.zones) {
      const at = { source: name, zone: zone.text }
      records.remove({ ...at, state: 'served' })
      conflicts.remove(at)
      serial.remove(at)
    }
    records.remove(refused)
    records.remove(ignored)
    badFiles.remove({ source: name })
  }
}

/** Exports the state of a cluster's watches, until the returned function is called. */
export function measureWatches(
  metrics: MetricsRegistry,
  name: string,
  source: KubernetesSource,
): () => void {
  const age = metrics.gauge(
    'sextant_kuadrant_source_age_seconds',
    'How old what is known of the records may be; 0 while they are followed.',
    ['source'],
  )
  const labels = ['source', 'watch']
  const up = metrics.gauge(
    'sextant_kuadrant_watch_up',
    '1 while changes come as they happen.',
    labels,
  )
  const lists = metrics.gauge('sextant_kuadrant_watch_lists', 'Lists since the start.', labels)
  const failures = metrics.gauge(
    'sextant_kuadrant_watch_failures',
    'Failed attempts since the start, by HTTP status; 0 = there was no usable answer.',
    [...labels, 'status'],
  )
  const stop = metrics.onCollect(() => {
    age.set({ source: name }, source.ageMs / 1000)
    for (const { what, isFollowing, counts } of source.watches) {
      const at = { source: name, watch: what }
      up.set(at, isFollowing ? 1 : 0)
      lists.set(at, counts.lists)
      for (const [status, count] of counts.failures) failures.set({ ...at, status }, count)
    }
  })
  return () => {
    stop()
    age.remove({ source: name })
    for (const { what, counts } of source.watches) {
      const at = { source: name, watch: what }
      up.remove(at)
      lists.remove(at)
      for (const status of counts.failures.keys()) failures.remove({ ...at, status })
    }
  }
}

/** Exports the state of a block's peers, until the returned function is called. */
export function measurePeers(
  metrics: MetricsRegistry,
  peers: () => readonly PeerStatus[],
): () => void {
  const labels = ['peer', 'key']
  const name = 'sextant_peer'
  const up = metrics.gauge(`${name}_up`, '1 while the peer answers.', labels)
  const seen = metrics.gauge(
    `${name}_last_seen_timestamp_seconds`,
    'When the peer last confirmed what is known of it; 0 = never.',
    labels,
  )
  const serial = metrics.gauge(
    `${name}_serial`,
    'SOA serial of the zone kdrnt of the peer.',
    labels,
  )
  const endpoints = metrics.gauge(`${name}_endpoints`, 'Endpoints that the peer tells of.', labels)
  const failures = metrics.gauge(`${name}_failures`, 'Failed attempts since the start.', labels)
  const refused = metrics.gauge(
    `${name}_refused`,
    'What of the peer is refused: lines of the log.',
    labels,
  )
  const gauges = [up, seen, serial, endpoints, failures, refused]
  const stop = metrics.onCollect(() => {
    for (const status of peers()) {
      const at = labelsOf(status)
      up.set(at, status.isUp ? 1 : 0)
      seen.set(at, status.lastSeenTimeMs / 1000)
      if (status.serial !== undefined) serial.set(at, status.serial)
      endpoints.set(at, status.endpoints)
      failures.set(at, status.failures)
      refused.set(at, status.refused)
    }
  })
  return () => {
    stop()
    for (const status of peers()) for (const gauge of gauges) gauge.remove(labelsOf(status))
  }
}

/** Exports refusals and conflicts of the peers of a block, until the returned function is called. */
export function measureDisputes(
  metrics: MetricsRegistry,
  zones: string,
  disputes: () => PeerDisputes,
): () => void {
  const conflicts = metrics.gauge(
    'sextant_peer_conflicts',
    'Disagreements with other sites: what is our own is served.',
    ['zones'],
  )
  const denied = metrics.gauge(
    'sextant_peer_denied',
    "Endpoints of the peer that are not the peer's to report: lines of the log.",
    ['zones', 'peer'],
  )
  let shown: ReadonlySet<string> = new Set()
  const stop = metrics.onCollect(() => {
    const now = disputes()
    conflicts.set({ zones }, now.conflicts)
    for (const peer of shown) if (!now.refused.has(peer)) denied.remove({ zones, peer })
    for (const [peer, count] of now.refused) denied.set({ zones, peer }, count)
    shown = new Set(now.refused.keys())
  })
  return () => {
    stop()
    conflicts.remove({ zones })
    for (const peer of shown) denied.remove({ zones, peer })
  }
}

/** Exports the state of the peer cache file, until the returned function is called. */
export function measurePeerCache(
  metrics: MetricsRegistry,
  peerCache: PeerCache,
  clock: Clock,
): () => void {
  const labels = ['file']
  const name = 'sextant_peer_memory'
  const written = metrics.gauge(
    `${name}_timestamp_seconds`,
    'When what peers told was written last; 0 = not by this process.',
    labels,
  )
  const octets = metrics.gauge(`${name}_octets`, 'Size of the file.', labels)
  const failing = metrics.gauge(`${name}_failing`, '1 while it can not be written.', labels)
  const at = { file: peerCache.status.path }
  const stop = metrics.onCollect(() => {
    const { ageMs, octets: size, fault } = peerCache.status
    written.set(at, ageMs === undefined ? 0 : Math.round((clock.now() - ageMs) / 1000))
    octets.set(at, size)
    failing.set(at, fault === '' ? 0 : 1)
  })
  return () => {
    stop()
    for (const gauge of [written, octets, failing]) gauge.remove(at)
  }
}
