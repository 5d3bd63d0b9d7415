import type { Clock } from '../../base/clock.ts'
import { writeMoment } from '../../base/moment.ts'
import type { ApiObject } from '../../kube/api.ts'
import { HEARD_MS } from '../../peering/quorum/heard-sites.ts'
import { reportedAfterMs } from '../peers/peer-set.ts'
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
  /** How long a silent site keeps its addresses that no check finds up. */
  readonly silentMs: number
  readonly startMs: number
  readonly clock: Clock
}

/**
 * Stores when the other clusters of an authoritative record were last heard. As with nameservers, `status.peers` has
 * the times of silent clusters. Otherwise their silence would begin again with each leader. `nextMs`: when a cluster
 * that does not answer is reported as silent, in monotonic milliseconds; Infinity = never. That a cluster stops
 * answering causes an event after HEARD_MS.
 */
export function noteHeard(
  record: DnsRecordView,
  { clusters, states, silentMs, startMs, clock }: HearingScene,
): { readonly heard: HeardClusters; readonly nextMs: number } {
  const { key, rootHost } = record
  if (!states.has(key)) states.open(key, scanPeers(record.status.peers, rootHost, clock))
  const foreign = readOwnedParts(record).filter(({ owner }) => owner.cluster !== '')
  const sites = new Map(foreign.map(({ owner, site }) => [owner.cluster, site]))
  const ids = [...sites.keys()].sort()
  const known = states.read(key, ids)
  const afterMs = Math.max(HEARD_MS, reportedAfterMs(silentMs))
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
    const nowMs = clock.monotonic()
    const isSilent = nowMs - seenMs >= afterMs
    if (!isSilent && nowMs - heardMs >= HEARD_MS) nextMs = Math.min(nextMs, seenMs + afterMs)
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
