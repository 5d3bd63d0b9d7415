import { assert } from '../base/assert.ts'
import { RRType } from '../dns/iana/types.ts'
import type { GeoCode } from '../geo/code.ts'
import { CANDIDATES_MAX, type Candidate, WEIGHT_DEFAULT, WEIGHT_MAX } from './candidate.ts'

/** One possible outcome of a draw: what is served, and how likely. */
export interface TierOutcome {
  /** Share in the draw: weight / sum of the tier's weights; 1..WEIGHT_MAX. */
  readonly weight: number
  readonly ttlSeconds: number
  /** At least one, each once. */
  readonly rdataIndexes: readonly number[]
}

/** The candidates that compete for one group of clients; at least one outcome. */
export type Tier = readonly TierOutcome[]

/** A set of candidates, sorted into tiers. */
export interface Tiers {
  /** Codes that some candidate names, sorted by text, `*` not among them. */
  readonly codes: readonly GeoCode[]
  /** `tiers[i]` is for clients of `codes[i]`; the last one is for everybody else. */
  readonly tiers: readonly Tier[]
}

/**
 * Sorts candidates into tiers by the rules of choice (docs: rules 3 and 4). The last tier holds the
 * default candidates, or all of them where none is a default.
 */
export function sortIntoTiers(candidates: readonly Candidate[], type: number): Tiers {
  assert(candidates.length > 0, 'a set has candidates')
  assert(candidates.length <= CANDIDATES_MAX, 'a set has at most CANDIDATES_MAX candidates')
  const byCode = new Map<string, { code: GeoCode; members: Candidate[] }>()
  for (const candidate of candidates) {
    const { code } = candidate
    if (code === undefined || code.rung === 'default') continue
    const group = byCode.get(code.text)
    if (group === undefined) byCode.set(code.text, { code, members: [candidate] })
    else group.members.push(candidate)
  }
  const groups = [...byCode.values()].sort((a, b) => (a.code.text < b.code.text ? -1 : 1))
  const defaults = candidates.filter((c) => c.isDefault || c.code?.rung === 'default')
  const last = defaults.length > 0 ? defaults : candidates
  return {
    codes: groups.map((group) => group.code),
    tiers: [...groups.map((group) => group.members), last].map((members) =>
      weighTier(members, type),
    ),
  }
}

/** Rule 4: what one draw among `candidates` can yield. */
function weighTier(candidates: readonly Candidate[], type: number): Tier {
  const members = uniqueEndpoints(candidates)
  const weighted = members.some((c) => c.weight !== undefined)
  if (!weighted && !isSingleton(type)) return [unite(members)]
  const outcomes = members.map((c) => ({
    weight: c.weight ?? (weighted ? WEIGHT_DEFAULT : 1),
    ttlSeconds: c.ttlSeconds,
    rdataIndexes: isSingleton(type) ? c.rdataIndexes.slice(0, 1) : [...new Set(c.rdataIndexes)],
  }))
  for (const outcome of outcomes) {
    assert(outcome.weight >= 0 && outcome.weight <= WEIGHT_MAX, 'a weight is 0..WEIGHT_MAX')
    assert(outcome.rdataIndexes.length > 0, 'a candidate has rdata')
  }
  // Zero is a standby: health has already taken away who is down, so whoever has a weight is up.
  const active = outcomes.filter((outcome) => outcome.weight > 0)
  return active.length > 0 ? active : outcomes.map((outcome) => ({ ...outcome, weight: 1 }))
}

/**
 * An endpoint with several codes comes as several candidates that share one array of indexes: where
 * they meet in one tier it counts once.
 */
function uniqueEndpoints(candidates: readonly Candidate[]): readonly Candidate[] {
  if (candidates.length === 1) return candidates
  const seen = new Set<readonly number[]>()
  return candidates.filter((c) => !seen.has(c.rdataIndexes) && seen.add(c.rdataIndexes))
}

/** Everything at once. All records of an RRset have one TTL (RFC 2181 section 5.2): the shortest. */
function unite(members: readonly Candidate[]): TierOutcome {
  return {
    weight: 1,
    ttlSeconds: Math.min(...members.map((c) => c.ttlSeconds)),
    rdataIndexes: [...new Set(members.flatMap((c) => c.rdataIndexes))].sort((a, b) => a - b),
  }
}

/** Types of which a name can have only one record (RFC 2181 section 10.1, RFC 6672 section 2.4). */
export function isSingleton(type: number): boolean {
  return type === RRType.CNAME || type === RRType.DNAME
}
