import { assert } from '../base/assert.ts'
import { RRType } from '../dns/iana/types.ts'
import { CANDIDATES_MAX, type Candidate, WEIGHT_DEFAULT, WEIGHT_MAX } from './candidate.ts'
import { type FailoverList, servingMembers } from './failover.ts'
import type { SetRules } from './rules.ts'
import { shiftWeights } from './shift.ts'
import type { StickySeed } from './sticky.ts'
import { type TierKey, tierKey } from './tier-key.ts'

/** One possible outcome of a draw: the rdata to serve, and their weight. */
export interface TierOutcome {
  /** 1..WEIGHT_MAX. The probability is this weight / sum of the tier's weights. */
  readonly weight: number
  readonly ttlSeconds: number
  /** Without duplicates; empty = the answer is NODATA. */
  readonly rdataIndexes: readonly number[]
  /** See `Candidate.seed`. */
  readonly seed?: StickySeed | undefined
  /** True = it has endpoints of a silent site. */
  readonly isStale?: boolean | undefined
}

/** The candidates that compete for one group of clients; at least one outcome. */
export type Tier = readonly TierOutcome[]

/** Receives what `sortIntoTiers` decides about each candidate, to explain answers. */
export interface TierReport {
  /**
   * All members are standbys, so their clients get the next tier of their ladder, or the next point.
   * `key`: undefined = the default candidates.
   */
  passedOver(key: TierKey | undefined, members: readonly Candidate[]): void
  /** A member of tier `tier` that no draw chooses, because another member has a positive weight. */
  standby(tier: number, member: Candidate): void
  /** The next outcome of tier `tier`, and the members that it serves; none = the answer is NODATA. */
  outcome(tier: number, members: readonly Candidate[]): void
  /** A failover list decides who serves in tier `tier`. */
  listed(tier: number, list: FailoverList): void
}

/** A set of candidates, sorted into tiers. */
export interface Tiers {
  /** Sorted by text. */
  readonly keys: readonly TierKey[]
  /** `tiers[i]` is for clients of `keys[i]`; the last tier is for all other clients. */
  readonly tiers: readonly Tier[]
}

/** The members of a tier, before the choice among them. */
interface TierGroup {
  /** Undefined = the last tier. */
  readonly key: TierKey | undefined
  readonly members: readonly Candidate[]
  /** Undefined = the members are those of the code. */
  readonly list?: FailoverList
}

/**
 * Sorts candidates into tiers (docs: rules 3 and 4). The last tier holds the default candidates, or
 * all candidates if none is a default. As long as some candidate is more than a standby, there is no
 * tier of standbys alone: its clients get the next tier of their ladder. For the codes of `rules.failover`,
 * its lists decide instead. Candidates of one code at several points have a tier for each point.
 */
export function sortIntoTiers(
  candidates: readonly Candidate[],
  type: number,
  { failover, answers }: Pick<SetRules, 'failover' | 'answers'> = {},
  report?: TierReport,
): Tiers {
  assert(candidates.length > 0, 'a set has candidates')
  assert(candidates.length <= CANDIDATES_MAX, 'a set has at most CANDIDATES_MAX candidates')
  const listed = (failover?.lists ?? []).map((list): TierGroup => {
    const key = list.code === undefined ? undefined : tierKey(list.code)
    return { key, members: servingMembers(list, failover!), list }
  })
  const unlisted = groupByCode(candidates).filter(({ key }) => {
    return !listed.some((group) => group.key?.text === key.text)
  })
  const areStandbys = candidates.every(isStandby)
  const serves = ({ key, members }: TierGroup): boolean => {
    if (areStandbys || !members.every(isStandby)) return true
    report?.passedOver(key, members)
    return false
  }
  const located = [...unlisted.filter(serves), ...listed.filter(({ key }) => key !== undefined)]
  const last = listed.find(({ key }) => key === undefined)
  const ends = last === undefined ? lastGroups(candidates, serves) : withPoints(last, serves)
  const groups = [...located.flatMap((group) => withPoints(group, serves)), ...ends]
  groups.sort(byKey)
  return {
    keys: groups.flatMap(({ key }) => key ?? []),
    tiers: groups.map(({ members, list }, tier) => {
      if (list !== undefined) report?.listed(tier, list)
      if (members.length > 0) return weighTier(members, { type, answers, tier, report })
      report?.outcome(tier, [])
      return [{ weight: 1, ttlSeconds: candidates[0]!.ttlSeconds, rdataIndexes: [] }]
    }),
  }
}

/** The group without a key comes last. */
function byKey({ key: a }: TierGroup, { key: b }: TierGroup): number {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1
  return a.text < b.text ? -1 : 1
}

function groupByCode(candidates: readonly Candidate[]): (TierGroup & { readonly key: TierKey })[] {
  const byCode = new Map<string, { key: TierKey; members: Candidate[] }>()
  for (const candidate of candidates) {
    const { code } = candidate
    if (code === undefined || code.rung === 'default') continue
    const group = byCode.get(code.text)
    if (group === undefined) byCode.set(code.text, { key: tierKey(code), members: [candidate] })
    else group.members.push(candidate)
  }
  return [...byCode.values()]
}

/** Returns the groups for clients that no code matches. */
function lastGroups(candidates: readonly Candidate[], serves: Serves): readonly TierGroup[] {
  const members = candidates.filter(isForOthers)
  const defaults: TierGroup = { key: undefined, members }
  const last =
    members.length > 0 && serves(defaults) ? defaults : { ...defaults, members: candidates }
  // The distance counts before the default.
  const near = pointGroups({ key: undefined, members: candidates.filter(isWithoutCode) }, serves)
  return near.length === 0 ? withPoints(last, serves) : withLast(near, last)
}

type Serves = (group: TierGroup) => boolean

/** Returns a group and, if its members are at several points, the groups of its points. */
function withPoints(group: TierGroup, serves: Serves): readonly TierGroup[] {
  return withLast(pointGroups(group, serves), group)
}

/** `rest`: for the clients of `groups` whose coordinates are unknown. */
function withLast(groups: readonly TierGroup[], rest: TierGroup): readonly TierGroup[] {
  const [only] = groups
  // One tier suffices if it serves all these clients alike.
  const isAlike =
    groups.length === 1 &&
    rest.members.length === only!.members.length &&
    rest.members.every((one) => only!.members.includes(one))
  return isAlike ? [rest] : [...groups, rest]
}

/** Returns a group for each point that members of `group` are at. */
function pointGroups({ key, members, ...rest }: TierGroup, serves: Serves): TierGroup[] {
  const byPoint = new Map<string, { key: TierKey; members: Candidate[] }>()
  for (const member of members) {
    const { point } = member
    if (point === undefined) continue
    const known = byPoint.get(point.text)
    if (known !== undefined) known.members.push(member)
    else byPoint.set(point.text, { ...rest, key: tierKey(key?.code, point), members: [member] })
  }
  return byPoint.size === 0 ? [] : [...byPoint.values()].filter(serves)
}

function isWithoutCode({ code }: Candidate): boolean {
  return code === undefined || code.rung === 'default'
}

/** True for a default candidate. */
export function isForOthers({ isDefault, code }: Candidate): boolean {
  return isDefault || code?.rung === 'default'
}

function isStandby({ weight }: Candidate): boolean {
  return weight === 0
}

interface WeighedTier extends Pick<SetRules, 'answers'> {
  readonly type: number
  /** Its number. */
  readonly tier: number
  readonly report: TierReport | undefined
}

/** Rule 4: returns the possible outcomes of one draw among `candidates`. */
function weighTier(
  candidates: readonly Candidate[],
  { type, answers = Number.POSITIVE_INFINITY, tier, report }: WeighedTier,
): Tier {
  const members = uniqueEndpoints(candidates)
  const weights = shiftWeights(members)
  const weighted = weights.some((weight) => weight !== undefined)
  if (!weighted && !isSingleton(type) && (members.length <= answers || !isAddress(type))) {
    report?.outcome(tier, members)
    return [unite(members)]
  }
  const outcomes = members.map((c, i): TierOutcome => {
    const outcome = {
      weight: weights[i] ?? (weighted ? WEIGHT_DEFAULT : 1),
      ttlSeconds: c.ttlSeconds,
      seed: c.seed,
      rdataIndexes: isSingleton(type) ? c.rdataIndexes.slice(0, 1) : [...new Set(c.rdataIndexes)],
    }
    return c.isStale === true ? { ...outcome, isStale: true } : outcome
  })
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
  const outcome = {
    weight: 1,
    ttlSeconds: Math.min(...members.map((c) => c.ttlSeconds)),
    rdataIndexes: [...new Set(members.flatMap((c) => c.rdataIndexes))].sort((a, b) => a - b),
  }
  return members.some(isStale) ? { ...outcome, isStale: true } : outcome
}

/** True for a candidate of a silent site. */
export function isStale(candidate: Candidate): boolean {
  return candidate.isStale === true
}

/**
 * True for types whose sets without weights may be served in part. Others, such as NS, MX or CAA, mean
 * something as a whole.
 */
export function isAddress(type: number): boolean {
  return type === RRType.A || type === RRType.AAAA
}

/** True for types that allow one record per name (RFC 2181 section 10.1, RFC 6672 section 2.4). */
export function isSingleton(type: number): boolean {
  return type === RRType.CNAME || type === RRType.DNAME
}
