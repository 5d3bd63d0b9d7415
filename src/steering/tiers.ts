import { assert } from '../base/assert.ts'
import { RRType } from '../dns/iana/types.ts'
import type { GeoCode } from '../geo/code.ts'
import { CANDIDATES_MAX, type Candidate, WEIGHT_DEFAULT, WEIGHT_MAX } from './candidate.ts'
import { type Failover, type FailoverList, servingMembers } from './failover.ts'
import { shiftWeights } from './shift.ts'
import type { StickySeed } from './sticky.ts'

/** One possible outcome of a draw: the rdata to serve, and their weight. */
export interface TierOutcome {
  /** 1..WEIGHT_MAX. The probability is this weight / sum of the tier's weights. */
  readonly weight: number
  readonly ttlSeconds: number
  /** Without duplicates; empty = the answer is NODATA. */
  readonly rdataIndexes: readonly number[]
  /** See `Candidate.seed`. */
  readonly seed?: StickySeed | undefined
}

/** The candidates that compete for one group of clients; at least one outcome. */
export type Tier = readonly TierOutcome[]

/** Receives what `sortIntoTiers` decides about each candidate, to explain answers. */
export interface TierReport {
  /**
   * All members are standbys, so their clients get the next tier of their ladder. `code`: undefined =
   * the default candidates.
   */
  passedOver(code: GeoCode | undefined, members: readonly Candidate[]): void
  /** A member of tier `tier` that no draw chooses, because another member has a positive weight. */
  standby(tier: number, member: Candidate): void
  /** The next outcome of tier `tier`, and the members that it serves; none = the answer is NODATA. */
  outcome(tier: number, members: readonly Candidate[]): void
  /** A failover list decides who serves in tier `tier`. */
  listed(tier: number, list: FailoverList): void
}

/** A set of candidates, sorted into tiers. */
export interface Tiers {
  /** Codes that some candidate or failover list names, without `*`, sorted by text. */
  readonly codes: readonly GeoCode[]
  /** `tiers[i]` is for clients of `codes[i]`; the last tier is for all other clients. */
  readonly tiers: readonly Tier[]
}

/** The members of a tier, before the choice among them. */
interface TierGroup {
  /** Undefined = the last tier. */
  readonly code: GeoCode | undefined
  readonly members: readonly Candidate[]
  /** Undefined = the members are those of the code. */
  readonly list?: FailoverList
}

/**
 * Sorts candidates into tiers (docs: rules 3 and 4). The last tier holds the default candidates, or
 * all candidates if none is a default. As long as some candidate is more than a standby, there is no
 * tier of standbys alone: its clients get the next tier of their ladder. For the codes of `failover`,
 * its lists decide instead.
 */
export function sortIntoTiers(
  candidates: readonly Candidate[],
  type: number,
  failover?: Failover,
  report?: TierReport,
): Tiers {
  assert(candidates.length > 0, 'a set has candidates')
  assert(candidates.length <= CANDIDATES_MAX, 'a set has at most CANDIDATES_MAX candidates')
  const listed = (failover?.lists ?? []).map((list): TierGroup => {
    return { code: list.code, members: servingMembers(list, failover!), list }
  })
  const lastListed = listed.find(({ code }) => code === undefined)
  const unlisted = groupByCode(candidates).filter(({ code }) => {
    return !listed.some((group) => group.code?.text === code.text)
  })
  const areStandbys = candidates.every(isStandby)
  const serves = ({ code, members }: TierGroup): boolean => {
    if (areStandbys || !members.every(isStandby)) return true
    report?.passedOver(code, members)
    return false
  }
  const located = [...unlisted.filter(serves), ...listed].flatMap((group) => {
    return group.code === undefined ? [] : [{ ...group, code: group.code }]
  })
  located.sort((a, b) => (a.code.text < b.code.text ? -1 : 1))
  const groups = [...located, lastListed ?? lastGroup(candidates, serves)]
  return {
    codes: located.map(({ code }) => code),
    tiers: groups.map(({ members, list }, tier) => {
      if (list !== undefined) report?.listed(tier, list)
      if (members.length > 0) return weighTier(members, type, tier, report)
      report?.outcome(tier, [])
      return [{ weight: 1, ttlSeconds: candidates[0]!.ttlSeconds, rdataIndexes: [] }]
    }),
  }
}

function groupByCode(candidates: readonly Candidate[]): (TierGroup & { readonly code: GeoCode })[] {
  const byCode = new Map<string, { code: GeoCode; members: Candidate[] }>()
  for (const candidate of candidates) {
    const { code } = candidate
    if (code === undefined || code.rung === 'default') continue
    const group = byCode.get(code.text)
    if (group === undefined) byCode.set(code.text, { code, members: [candidate] })
    else group.members.push(candidate)
  }
  return [...byCode.values()]
}

function lastGroup(
  candidates: readonly Candidate[],
  serves: (group: TierGroup) => boolean,
): TierGroup {
  const members = candidates.filter(isForOthers)
  const defaults = { code: undefined, members }
  return members.length > 0 && serves(defaults) ? defaults : { ...defaults, members: candidates }
}

/** True for a default candidate. */
export function isForOthers({ isDefault, code }: Candidate): boolean {
  return isDefault || code?.rung === 'default'
}

function isStandby({ weight }: Candidate): boolean {
  return weight === 0
}

/** Rule 4: returns the possible outcomes of one draw among `candidates`. */
function weighTier(
  candidates: readonly Candidate[],
  type: number,
  tier: number,
  report: TierReport | undefined,
): Tier {
  const members = uniqueEndpoints(candidates)
  const weights = shiftWeights(members)
  const weighted = weights.some((weight) => weight !== undefined)
  if (!weighted && !isSingleton(type)) {
    report?.outcome(tier, members)
    return [unite(members)]
  }
  const outcomes = members.map((c, i) => ({
    weight: weights[i] ?? (weighted ? WEIGHT_DEFAULT : 1),
    ttlSeconds: c.ttlSeconds,
    seed: c.seed,
    rdataIndexes: isSingleton(type) ? c.rdataIndexes.slice(0, 1) : [...new Set(c.rdataIndexes)],
  }))
  for (const outcome of outcomes) {
    assert(outcome.weight >= 0 && outcome.weight <= WEIGHT_MAX, 'a weight is 0..WEIGHT_MAX')
    assert(outcome.rdataIndexes.length > 0, 'a candidate has rdata')
  }
  // Weight 0 is a standby. Unhealthy candidates are removed already, so every candidate with a
  // weight is healthy.
  const active = outcomes.filter((outcome) => outcome.weight > 0)
  if (report !== undefined) reportMembers(members, outcomes, tier, report)
  return active.length > 0 ? active : outcomes.map((outcome) => ({ ...outcome, weight: 1 }))
}

function reportMembers(
  members: readonly Candidate[],
  outcomes: readonly TierOutcome[],
  tier: number,
  report: TierReport,
): void {
  const hasActive = outcomes.some(({ weight }) => weight > 0)
  for (const [i, member] of members.entries()) {
    if (hasActive && outcomes[i]!.weight === 0) report.standby(tier, member)
    else report.outcome(tier, [member])
  }
}

/**
 * Removes duplicate endpoints. An endpoint with several codes has several candidates that share one
 * index array; in one tier the endpoint counts once.
 */
function uniqueEndpoints(candidates: readonly Candidate[]): readonly Candidate[] {
  if (candidates.length === 1) return candidates
  const seen = new Set<readonly number[]>()
  return candidates.filter((c) => !seen.has(c.rdataIndexes) && seen.add(c.rdataIndexes))
}

/**
 * Returns one outcome with the rdata of all members, and the lowest of their TTLs: all records of
 * an RRset have one TTL (RFC 2181 section 5.2).
 */
function unite(members: readonly Candidate[]): TierOutcome {
  return {
    weight: 1,
    ttlSeconds: Math.min(...members.map((c) => c.ttlSeconds)),
    rdataIndexes: [...new Set(members.flatMap((c) => c.rdataIndexes))].sort((a, b) => a - b),
  }
}

/** True for types that allow one record per name (RFC 2181 section 10.1, RFC 6672 section 2.4). */
export function isSingleton(type: number): boolean {
  return type === RRType.CNAME || type === RRType.DNAME
}
