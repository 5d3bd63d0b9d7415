import type { ApiResource, JsonValue } from '../../../kube/api.ts'
import { REMOVAL_GRACE_MS } from './lookup-time.ts'
import type { Lookup, UpdateLimits } from './resolved-names.ts'

/**
 * An API whose objects have a DNS name or a wildcard in `spec.name`, and in `status.resolvedNames`
 * the addresses that it resolves to. `Entry`: one item of this list. All functions are pure.
 */
export interface NameApi<Entry> {
  readonly resource: ApiResource
  /** True if a status may have this name: lower case, with the final dot. */
  accepts(dnsName: string): boolean
  /** Reads `status.resolvedNames`. Omits what has no meaning. */
  scan(value: JsonValue | undefined): readonly Entry[]
  print(entries: readonly Entry[]): JsonValue
  /** Returns the entries after a lookup; the same array if nothing changes that is worth a write. */
  update(
    entries: readonly Entry[],
    specName: string,
    lookup: Lookup,
    limits: UpdateLimits,
  ): readonly Entry[]
  /** Calls `visit` with each address, and the end of its TTL in milliseconds since 1970. */
  forEachAddress(entry: Entry, visit: (ip: string, endMs: number) => void): void
  /** Upper bound of the octets that the entry has in the API's storage. */
  octetsOf(entry: Entry): number
  /** Returns the entries without the addresses whose TTL ended before `endMs`. */
  withoutExpired(entries: readonly Entry[], endMs: number): readonly Entry[]
}

/**
 * Most octets of the entries of one object. The API stores at most 1.5 MiB per object. About half of
 * this is `metadata.managedFields`.
 */
export const ENTRIES_OCTETS_MAX = 1_200_000

/** What `updateWithinBound` does at the bound. */
export interface Bound {
  readonly limits: UpdateLimits
  /** False: entries that expired are not removed, because that takes time and there were none lately. */
  readonly mayPrune: boolean
  /** There is no room for the lookup. */
  readonly onFull: () => void
}

/**
 * As `update` of the API, but with a bound. If the entries after the lookup are too large, those that
 * expired are removed. If that is not enough, the lookup changes nothing, because addresses in use are
 * worth more than new ones.
 */
export function updateWithinBound<Entry>(
  api: NameApi<Entry>,
  entries: readonly Entry[],
  specName: string,
  lookup: Lookup,
  { limits, mayPrune, onFull }: Bound,
): readonly Entry[] {
  const next = api.update(entries, specName, lookup, limits)
  if (next === entries || octetsOf(api, next) <= ENTRIES_OCTETS_MAX) return next
  if (mayPrune) {
    const pruned = api.withoutExpired(next, lookup.nowMs - REMOVAL_GRACE_MS)
    if (octetsOf(api, pruned) <= ENTRIES_OCTETS_MAX) return pruned
  }
  onFull()
  return entries
}

function octetsOf<Entry>(api: NameApi<Entry>, entries: readonly Entry[]): number {
  return entries.reduce((sum, entry) => sum + api.octetsOf(entry), 0)
}
