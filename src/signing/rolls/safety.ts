import type { RollKey, RollState, TimelineName } from './roll-state.ts'
import { TIMELINES } from './roll-state.ts'
import { liveVersions } from './timeline.ts'

/** Ids of keys by set of records: what one validator may have in its cache. */
type CachedSets = Readonly<Record<TimelineName, readonly string[]>>

/**
 * True if every answer validates for each combination of old and current versions, if `keys` becomes the current
 * version of one of them. Also holds for validators that demand a valid signature of each algorithm (RFC 4035 section
 * 2.2, RFC 6840 section 5.11).
 */
export function isSafe(state: RollState, changed: TimelineName, keys: readonly string[]): boolean {
  const [dnskeys, signers, parents] = TIMELINES.map((name) =>
    name === changed ? [keys] : liveVersions(state[name]),
  )
  const byId = new Map(state.keys.map((key) => [key.id, key]))
  return parents!.every((ds) =>
    dnskeys!.every((dnskey) =>
      signers!.every((one) => validates({ dnskey, signers: one, ds }, byId)),
    ),
  )
}

function validates(
  { dnskey, signers, ds }: CachedSets,
  byId: ReadonlyMap<string, RollKey>,
): boolean {
  // The delegation is insecure.
  if (ds.length === 0) return true
  const trusted = dnskey.filter((id) => ds.includes(id) && byId.get(id)?.role !== 'zsk')
  const signing = dnskey.filter((id) => signers.includes(id))
  return covers(trusted, ds, byId) && covers(signing, dnskey, byId)
}

/** True if `ids` have all algorithms of `others`. */
function covers(
  ids: readonly string[],
  others: readonly string[],
  byId: ReadonlyMap<string, RollKey>,
): boolean {
  const algorithms = new Set(ids.map((id) => byId.get(id)?.algorithm))
  return ids.length > 0 && others.every((id) => algorithms.has(byId.get(id)?.algorithm))
}
