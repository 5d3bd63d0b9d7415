import type { Generation } from './peer-endpoint.ts'
import { V1_LACKS } from './read-v1.ts'

/** State of one peer. */
export interface PeerStatus {
  /** `host:port`, as configured. */
  readonly address: string
  /** Name of the key for queries; '' = none. */
  readonly keyName: string
  /** Sites that it reports, joined by commas; '' = not known. */
  readonly site: string
  /** Format of its data; '' = it has not answered yet. */
  readonly generation: Generation | ''
  /** Monotonic milliseconds: when it last confirmed its data; -Infinity = never. */
  readonly lastSeenMs: number
  /** The same as milliseconds since the epoch, by the wall clock at that time; 0 = never. */
  readonly lastSeenTimeMs: number
  /** Serial of its zone kdrnt; undefined = not known. */
  readonly serial: number | undefined
  /** It answers now, and has answered since this process started to query it. */
  readonly isUp: boolean
  /** The current error; '' = none. */
  readonly error: string
  /** Failed attempts since the start. */
  readonly failures: number
  /** Number of endpoints that it reports. */
  readonly endpoints: number
  /** Number of refused endpoints among those that were read; each is a log line. */
  readonly refused: number
}

/** True for the time of an answer, false for the value that means never. */
export function wasHeard(lastSeenMs: number): boolean {
  return lastSeenMs !== Number.NEGATIVE_INFINITY
}

/** Returns the host without its `*.`. */
export function bareHost(rootHost: string): string {
  return rootHost.startsWith('*.') ? rootHost.slice(2) : rootHost
}

export interface PeerLabels extends Record<string, string> {
  readonly peer: string
}

/** Sites that the label of a peer names: a peer may report any number. */
const SITES_MAX = 5

/**
 * Returns the metric labels of a peer. Two peers at one address with different keys have different
 * labels. Without a key, the label `key` is absent. Until the peer reports a site, `site` is absent.
 */
export function labelsOf({
  address,
  keyName,
  site,
}: Pick<PeerStatus, 'address' | 'keyName' | 'site'>): PeerLabels {
  return {
    peer: address,
    ...(keyName === '' ? {} : { key: keyName }),
    ...(site === '' ? {} : { site: printSites(site) }),
  }
}

function printSites(joined: string): string {
  const sites = joined.split(',', SITES_MAX + 1)
  return sites.length <= SITES_MAX ? joined : `${sites.slice(0, SITES_MAX).join()},…`
}

/**
 * Returns one status per address and key name. During a key rotation, two keys of one name differ
 * only in their secret, which must not be shown. The joined status is that of the peer that was
 * heard longest ago, with the errors of all.
 */
export function joinStatuses(statuses: readonly PeerStatus[]): readonly PeerStatus[] {
  const joined = new Map<string, PeerStatus>()
  for (const status of statuses) {
    const id = `${status.address} ${status.keyName}`
    const known = joined.get(id)
    if (known === undefined) {
      joined.set(id, status)
      continue
    }
    const older = status.lastSeenMs < known.lastSeenMs ? status : known
    joined.set(id, {
      ...older,
      isUp: known.isUp && status.isUp,
      failures: known.failures + status.failures,
      refused: known.refused + status.refused,
    })
  }
  return [...joined.values()]
}

/** Returns how a peer is followed from now on. `reason`: why it is v1. */
export function printGeneration(status: PeerStatus, reason: string): string {
  const { address, generation, endpoints, serial } = status
  return generation === 'v1'
    ? /* info */ `peer ${address} is queried for each host: ${reason}; ${V1_LACKS}`
    : /* info */ `peer ${address} is followed by zone transfer: ${endpoints} endpoints, serial ${serial}`
}
