import type { Generation } from './peer-endpoint.ts'

/** How one peer stands. */
export interface PeerStatus {
  /** `host:port`, as configured. */
  readonly address: string
  /** Of the key that it is asked with; '' = none. */
  readonly keyName: string
  /** Sites that it speaks for, joined by commas; '' = not known. */
  readonly site: string
  /** How it is asked; '' = it has not answered yet. */
  readonly generation: Generation | ''
  /** Monotonic: when it last confirmed what we have of it; -Infinity = never. */
  readonly lastSeenMs: number
  /** The same as milliseconds since the epoch, by the wall clock as it was then; 0 = never. */
  readonly lastSeenTimeMs: number
  /** Of its zone kdrnt; undefined = not known. */
  readonly serial: number | undefined
  /** It answers, and did so since we began to ask. */
  readonly isUp: boolean
  /** What is wrong just now; '' = nothing. */
  readonly error: string
  /** Failed attempts since the start. */
  readonly failures: number
  /** Endpoints that it tells of. */
  readonly endpoints: number
  /** What of those that were looked at was refused: lines of the log. */
  readonly refused: number
}

/** True for when a peer was seen, false for what says that it never was. */
export function wasHeard(lastSeenMs: number): boolean {
  return lastSeenMs !== Number.NEGATIVE_INFINITY
}

/** Without its `*.`. */
export function bareHost(rootHost: string): string {
  return rootHost.startsWith('*.') ? rootHost.slice(2) : rootHost
}

export interface PeerLabels extends Record<string, string> {
  readonly peer: string
}

/** Labels of its metrics: two that are asked at one address with other keys are two. Without a key there is no label `key`. */
export function labelsOf({
  address,
  keyName,
}: Pick<PeerStatus, 'address' | 'keyName'>): PeerLabels {
  return keyName === '' ? { peer: address } : { peer: address, key: keyName }
}

/**
 * One status for each address and key name: keys of one name, as while one is replaced, differ in what is not to be shown.
 * Of several it is that of the one that was heard longest ago, with what is amiss with any.
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
