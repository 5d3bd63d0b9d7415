import type { Clock } from '../../base/clock.ts'
import { writeMoment } from '../../base/moment.ts'
import type { ApiObject } from '../../kube/api.ts'
import { HEARD_MS } from '../../peering/quorum/heard-sites.ts'
import type { KnownPeer, PeerStateStore } from '../peers/peer-state-store.ts'
import type { PeerState } from '../peers/peers.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { printPeers, scanPeers } from '../status/peer-status.ts'
import { readOwnedParts } from './whole.ts'

const REASON = 'its API server does not answer'

/** When each other cluster that contributes to an authoritative record was last heard, by id of the cluster. */
export type HeardClusters = ReadonlyMap<string, KnownPeer>

interface HearingScene {
  /** As in `FollowedClusters`. */
  readonly clusters: { heardMsOf(cluster: string): number }
  readonly states: PeerStateStore
  readonly startMs: number
  readonly clock: Clock
}

/**
 * Stores when the other clusters of an authoritative record were last heard. `nextMs`: when a cluster that was not
 * heard since the start becomes silent, in monotonic milliseconds; Infinity = never. As with nameservers,
 * `status.peers` has the times of silent clusters. Otherwise their silence would begin again with each leader.
 */
export function noteHeard(
  record: DnsRecordView,
  { clusters, states, startMs, clock }: HearingScene,
): { readonly heard: HeardClusters; readonly nextMs: number } {
  const { key, rootHost } = record
  if (!states.has(key)) states.open(key, scanPeers(record.status.peers, rootHost, clock))
  const foreign = readOwnedParts(record).filter(({ owner }) => owner.cluster !== '')
  const sites = new Map(foreign.map(({ owner, site }) => [owner.cluster, site]))
  const ids = [...sites.keys()].sort()
  const known = states.read(key, ids)
  let nextMs = Number.POSITIVE_INFINITY
  for (const id of ids) {
    const before = known.get(id)?.state
    const heardMs = clusters.heardMsOf(id)
    const seenMs = Math.max(heardMs, before?.seenMs ?? startMs)
    const exported = { site: sites.get(id)!, exporter: id, isOwn: true, rootHost, seenMs }
    const state: PeerState =
      before?.seenMs === seenMs
        ? before
        : {
            siteStates: [{ ...exported, endpoints: [], generation: 'v2' }],
            seenMs,
            seenTimeMs: writeMoment(seenMs, clock),
            generation: 'v2',
            serial: undefined,
            problems: [],
          }
    const isSilent = clock.monotonic() - seenMs >= HEARD_MS
    if (!isSilent && heardMs === Number.NEGATIVE_INFINITY)
      nextMs = Math.min(nextMs, seenMs + HEARD_MS)
    states.note(
      key,
      id,
      isSilent ? { kind: 'silent', reason: REASON, state } : { kind: 'answered', state },
    )
  }
  return { heard: states.read(key, ids), nextMs }
}

/** `status.peers` of an authoritative record; undefined = no cluster is silent. */
export function printSilent(heard: HeardClusters): readonly ApiObject[] | undefined {
  const silent = [...heard.keys()].filter((id) => heard.get(id)!.reason !== '').sort()
  if (silent.length === 0) return undefined
  return printPeers(silent, heard, { form: 'whole', roomOctets: 0 })
}
