import type { ProblemGroup, ProblemText } from '../../base/telemetry/problems.ts'
import { type PeerStatus, wasHeard } from '../../peering/peer-status.ts'
import type { TroubleLog } from '../../peering/trouble-log.ts'

type Troubles = Pick<TroubleLog, 'disputes' | 'texts'>

/** How long a peer must be silent: it may only have restarted. */
const SILENCE_MS = 5000

/**
 * Returns the silent peers, and what is wrong with endpoints that peers report. `of`: name of the source. `nowMs`:
 * monotonic.
 */
export function groupsOfPeers(
  of: string,
  statuses: readonly PeerStatus[],
  troubles: Troubles | undefined,
  nowMs: number,
): ProblemGroup[] {
  const silent = statuses
    .filter(({ lastSeenMs, error }) => error !== '' && nowMs - lastSeenMs >= SILENCE_MS)
    .map((status) => problemOfPeer(status, printSilence(status, nowMs)))
  const invalid = statuses
    .filter(({ refused }) => refused > 0)
    .map((status) => {
      const { address, refused } = status
      return problemOfPeer(status, `peer ${address}: ${refused} items are invalid: see the log`)
    })
  // Publishers share a peer, but not what it reports of their zones.
  const byPeer = statuses.map(({ address }) => address).join(' ')
  return [
    { kind: 'silent-peer', of: byPeer, count: silent.length, problems: silent },
    { kind: 'peer-endpoint', of: byPeer, count: invalid.length, problems: invalid },
    { kind: 'peer-endpoint', of, ...listTroubles(troubles) },
  ]
}

function listTroubles(troubles: Troubles | undefined): Pick<ProblemGroup, 'count' | 'problems'> {
  if (troubles === undefined) return { count: 0, problems: [] }
  const { unserved, refused } = troubles.disputes
  const count = [...refused.values()].reduce((sum, ofPeer) => sum + ofPeer, unserved)
  return { count, problems: textsOf(troubles) }
}

function* textsOf(troubles: Troubles): Generator<ProblemText> {
  for (const { host, text } of troubles.texts()) yield { place: '', object: host, reason: text }
}

function problemOfPeer({ address }: PeerStatus, reason: string): ProblemText {
  return { place: address, object: `peer ${address}`, reason }
}

function printSilence(
  { address, lastSeenMs, error, endpoints }: PeerStatus,
  nowMs: number,
): string {
  if (!wasHeard(lastSeenMs)) return `peer ${address} has never answered: ${error}`
  const seconds = Math.round((nowMs - lastSeenMs) / 1000)
  return `peer ${address} silent for ${seconds} s, it last reported ${endpoints} endpoints: ${error}`
}
