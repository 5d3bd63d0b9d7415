import type { Clock } from '../../base/clock.ts'
import type { MetricsRegistry } from '../../base/telemetry/metrics.ts'
import type { PeerCache } from '../../peering/cache/peer-cache.ts'
import { labelsOf, type PeerLabels, type PeerStatus } from '../../peering/peer-status.ts'
import type { QuorumStatus } from '../../peering/quorum/health-quorum.ts'
import type { PeerDisputes } from '../../peering/trouble-log.ts'

/** Exports the state of peers, until the returned function is called. */
export function measurePeers(
  metrics: MetricsRegistry,
  peers: () => readonly PeerStatus[],
): () => void {
  const labels = ['peer', 'key', 'site']
  const name = 'sextant_peer'
  const up = metrics.gauge(`${name}_up`, '1 while the peer answers.', labels)
  const seen = metrics.gauge(
    `${name}_last_seen_timestamp_seconds`,
    'Time at which the peer last confirmed its endpoints; 0 = never.',
    labels,
  )
  const serial = metrics.gauge(
    `${name}_serial`,
    'SOA serial of the zone kdrnt of the peer.',
    labels,
  )
  const endpoints = metrics.gauge(`${name}_endpoints`, 'Endpoints that the peer exports.', labels)
  const failures = metrics.gauge(`${name}_failures`, 'Failed attempts since the start.', labels)
  const refused = metrics.gauge(
    `${name}_refused`,
    'Refused endpoints of the peer; the log names them.',
    labels,
  )
  const gauges = [up, seen, serial, endpoints, failures, refused]
  // The sites of a peer may change.
  let shown = new Map<string, PeerLabels>()
  const stop = metrics.onCollect(() => {
    const before = shown
    shown = new Map(
      peers()
        .map(labelsOf)
        .map((at) => [JSON.stringify(at), at]),
    )
    for (const [id, at] of before) if (!shown.has(id)) for (const gauge of gauges) gauge.remove(at)
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
    for (const at of shown.values()) for (const gauge of gauges) gauge.remove(at)
  }
}

/** Exports what peers of some zones report and is not served, until the returned function is called. */
export function measureDisputes(
  metrics: MetricsRegistry,
  zones: string,
  disputes: () => PeerDisputes,
  peers: () => readonly PeerStatus[],
): () => void {
  const unserved = metrics.gauge(
    'sextant_peer_conflicts',
    'Problems that keep endpoints of other sites from being served: an invalid endpoint, or a host without room.',
    ['zones'],
  )
  const denied = metrics.gauge(
    'sextant_peer_denied',
    'Endpoints that the peer may not report; the log names them.',
    ['zones', 'peer', 'site'],
  )
  let shown: readonly PeerLabels[] = []
  const stop = metrics.onCollect(() => {
    const now = disputes()
    unserved.set({ zones }, now.unserved)
    for (const at of shown) denied.remove({ zones, ...at })
    const sites = new Map(peers().map(({ address, site }) => [address, site]))
    const counts = [...now.refused].map(([peer, count]) => {
      const at = labelsOf({ address: peer, keyName: '', site: sites.get(peer) ?? '' })
      return { at, count }
    })
    for (const { at, count } of counts) denied.set({ zones, ...at }, count)
    shown = counts.map(({ at }) => at)
  })
  return () => {
    stop()
    unserved.remove({ zones })
    for (const at of shown) denied.remove({ zones, ...at })
  }
}

/** Exports how sites agree on the health of peers' addresses, until the returned function is called. */
export function measureQuorum(
  metrics: MetricsRegistry,
  zones: string,
  status: () => QuorumStatus,
): () => void {
  const labels = ['zones']
  const isolated = metrics.gauge(
    'sextant_peer_isolated',
    '1 while this site hears less than a majority of the sites.',
    labels,
  )
  const heard = metrics.gauge(
    'sextant_peer_sites_heard',
    'Sites that are heard, including this site.',
    labels,
  )
  const down = metrics.gauge(
    'sextant_peer_addresses_down',
    'Addresses of other sites that are taken out although their own sites do not report them down.',
    labels,
  )
  const disputed = metrics.gauge(
    'sextant_peer_addresses_disputed',
    'Addresses of peers about whose health sites disagree.',
    labels,
  )
  const at = { zones }
  const stop = metrics.onCollect(() => {
    const now = status()
    isolated.set(at, now.isIsolated ? 1 : 0)
    heard.set(at, now.heard)
    down.set(at, now.down)
    disputed.set(at, now.disputed)
  })
  return () => {
    stop()
    for (const gauge of [isolated, heard, down, disputed]) gauge.remove(at)
  }
}

/** Exports the state of the peer cache file, until the returned function is called. */
export function measurePeerCache(
  metrics: MetricsRegistry,
  peerCache: PeerCache,
  clock: Clock,
): () => void {
  const labels = ['file']
  const name = 'sextant_peer_cache'
  const written = metrics.gauge(
    `${name}_timestamp_seconds`,
    'Time at which the file was last written; 0 = not by this process.',
    labels,
  )
  const octets = metrics.gauge(`${name}_octets`, 'Size of the file.', labels)
  const failing = metrics.gauge(`${name}_failing`, '1 while the file cannot be written.', labels)
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
