import { printType, RRType } from '../dns/iana/types.ts'
import { printName } from '../dns/name/name.ts'
import type { Endpoint } from '../dnsrecord/dns-record.ts'
import type { RecordSettings } from '../dnsrecord/settings.ts'
import type { PointSet } from '../geo/classes/point-orders.ts'
import type { EndpointDrain } from '../health/drain/drain.ts'
import type { ShiftState } from '../health/shift/shift.ts'
import { SLOW_START_UNITS, scaleWeights } from '../health/slow-start-units.ts'
import { CANDIDATES_MAX, type Candidate, type CandidateShift } from '../steering/candidate.ts'
import type { Failover } from '../steering/failover.ts'
import { type AllDownPolicy, OPEN, type StickyPrefix } from '../steering/rules.ts'
import { stickySeed } from '../steering/sticky.ts'
import { describeUnknown, type Member, settleFailover } from './failover-lists.ts'
import { buildLastResort, dropOf, settleAllDown } from './last-resort.ts'
import {
  NO_SETTINGS,
  type OwnerSettings,
  settleSettings,
  type ZoneSettings,
} from './owner-settings.ts'
import { settlePoints } from './point-sets.ts'
import { equalRdata, indexTargets, isDrained, isTargetOut } from './target-indexes.ts'

/** An endpoint and the record that contains it. */
export interface Contribution {
  /** `namespace/name` of the record. */
  readonly key: string
  /**
   * Creation time of the record, in seconds since the epoch; 0 = unknown, which counts as youngest.
   */
  readonly createdSeconds: number
  readonly endpoint: Endpoint
  /** Indexes of the endpoint's targets that are down; empty = none. */
  readonly down: ReadonlySet<number>
  /** Drains of the endpoint's targets, by index; undefined = none. */
  readonly drained?: ReadonlyMap<number, EndpointDrain> | undefined
  /** Part of its weight that it gets, 1..SLOW_START_UNITS; undefined = the full weight. */
  readonly units?: number | undefined
  /** Settings of the record; undefined = it has none. */
  readonly settings?: RecordSettings | undefined
  /** The shift of the record's traffic; undefined = it has none. */
  readonly shift?: ShiftState | undefined
}

/** Record key of the default NS, which no record or Corefile sets. */
export const DEFAULT_KEY = 'the default NS'

/** A conflict between endpoints, and how it was resolved. */
export interface Conflict {
  readonly text: string
  /** `namespace/name` of the record that was overruled, or that came last. */
  readonly key: string
  /** Owner and type of that record's endpoint. */
  readonly owner: Uint8Array
  readonly type: number
}

/** Why an endpoint is not a candidate. `by`: `namespace/name` of the record of the other endpoint. */
export type Drop =
  /** All its targets are down. */
  | { readonly kind: 'down' }
  /** A drain takes it out, or all its targets that are not down. */
  | { readonly kind: 'drained'; readonly drain: EndpointDrain }
  /** A CNAME beside other types: only the other kind is served. */
  | { readonly kind: 'cname'; readonly by: string }
  /** It equals another endpoint, which represents both. */
  | { readonly kind: 'merged'; readonly by: string }
  /** Another endpoint has the same set identifier and different content. */
  | { readonly kind: 'contradicted'; readonly by: string }
  /** The RRset has too many endpoints. */
  | { readonly kind: 'cut' }

/** Receives what `buildOwnerSets` decides about each endpoint, to explain answers. */
export interface BuildReport {
  dropped(contribution: Contribution, drop: Drop): void
  /** `contribution`: may be merged from several. The candidates share its targets. */
  kept(contribution: Contribution, candidates: readonly Candidate[]): void
}

/** What serves although all endpoints of a set are down. */
export interface AllDown {
  /** The policy in force. A fallback endpoint that is missing leaves `open`. */
  readonly policy: AllDownPolicy
  /** The set identifier that the settings name and no endpoint has; undefined = none is missing. */
  readonly missing?: string | undefined
  /** True = the fallback endpoint is drained, so that the answer is empty. */
  readonly isDrained?: boolean | undefined
}

/** Failover lists without an endpoint in service. */
export interface Exhausted {
  /** Their geo codes, or `*`. */
  readonly lists: readonly string[]
  /** What serves their clients. */
  readonly allDown: AllDown
}

/** The RRset to serve for one owner and type. */
export interface OwnerSet {
  readonly type: number
  /** One TTL for the whole set (RFC 2181 section 5.2): the lowest TTL of its endpoints. */
  readonly ttlSeconds: number
  /** Distinct rdata, in order of contribution; empty = all are down and the answer is NODATA. */
  readonly rdata: readonly Uint8Array[]
  /** Empty only if `rdata` is. */
  readonly candidates: readonly Candidate[]
  /** All endpoints of the set, also those that are not served. */
  readonly endpoints: readonly Member[]
  /** The candidates are chosen by this prefix of the client; undefined = by draws. */
  readonly sticky?: StickyPrefix | undefined
  /** Lists that replace the ladder for some codes; undefined = none. */
  readonly failover?: Failover | undefined
  /** Points that compete for clients, in service or not; undefined = no endpoint has a location. */
  readonly pointSets?: readonly PointSet[] | undefined
  /** Undefined = some target is in service. */
  readonly allDown?: AllDown | undefined
  /** Undefined = every failover list has an endpoint in service. */
  readonly exhausted?: Exhausted | undefined
  /** The shift to some of its endpoints; undefined = none. */
  readonly shift?: ShiftState | undefined
  /** Number of endpoints whose targets are all down or drained, at least one of them drained. */
  readonly drainedCount: number
}

export interface BuildOptions {
  readonly isApex: boolean
  /** Settings for records without their own; undefined = the defaults. */
  readonly settings?: ZoneSettings | undefined
  readonly report?: BuildReport | undefined
}

interface BuildRules extends Pick<BuildOptions, 'report'> {
  readonly settings: OwnerSettings
}

/**
 * Returns the RRsets of one owner from all its endpoints. `conflicts` receives one entry per
 * conflict. The rules do not depend on the order of files and events:
 *
 * - Contributions are ordered: older record first, then by namespace/name, then by place in the record.
 * - CNAME beside other types: the type of the first contribution is served. At an apex, the CNAME is
 *   always removed.
 * - Equal endpoints are merged. If a set identifier has different contents, the first one is served.
 * - The lowest TTL applies to all endpoints.
 * - A setting is that of the first record that has it, else the zone's.
 */
export function buildOwnerSets(
  owner: Uint8Array,
  contributions: readonly Contribution[],
  options: BuildOptions,
  conflicts: Conflict[],
): OwnerSet[] {
  if (contributions.length === 0) return []
  const { key } = contributions[0]!
  const isOfOne = contributions.every((contribution) => contribution.key === key)
  const ordered = isOfOne ? contributions : [...contributions].sort(compare)
  const { report } = options
  const allowed = settleCnames(owner, ordered, options, conflicts)
  const settings = settleSettings(owner, allowed, options.settings ?? NO_SETTINGS, conflicts)
  noteUnknown(owner, allowed, settings, conflicts)
  const by = { settings, report }
  const { type } = allowed[0]!.endpoint
  if (allowed.every((contribution) => contribution.endpoint.type === type))
    return [buildSet(owner, type, allowed, by, conflicts)]
  const byType = new Map<number, Contribution[]>()
  for (const contribution of allowed) {
    const known = byType.get(contribution.endpoint.type)
    if (known === undefined) byType.set(contribution.endpoint.type, [contribution])
    else known.push(contribution)
  }
  return [...byType].map(([type, members]) => buildSet(owner, type, members, by, conflicts))
}

/** Reports the entries of failover lists that no endpoint has. */
function noteUnknown(
  owner: Uint8Array,
  contributions: readonly Contribution[],
  { failover }: OwnerSettings,
  conflicts: Conflict[],
): void {
  if (failover === undefined) return
  const endpoints = contributions.map(({ endpoint }) => endpoint)
  const text = describeUnknown(owner, failover, endpoints)
  const having = contributions.find(({ settings }) => settings?.failover !== undefined)
  if (text !== undefined && having !== undefined) conflicts.push(conflictAt(having, text))
}

/** A stable order: endpoints of one record keep their order. */
function compare(a: Contribution, b: Contribution): number {
  const ageA = a.createdSeconds || Number.POSITIVE_INFINITY
  const ageB = b.createdSeconds || Number.POSITIVE_INFINITY
  if (ageA !== ageB) return ageA < ageB ? -1 : 1
  if (a.key === b.key) return 0
  return a.key < b.key ? -1 : 1
}

function settleCnames(
  owner: Uint8Array,
  ordered: readonly Contribution[],
  { isApex, report }: BuildOptions,
  conflicts: Conflict[],
): readonly Contribution[] {
  const isCname = (c: Contribution): boolean => c.endpoint.type === RRType.CNAME
  const cname = ordered.find(isCname)
  if (cname === undefined) return ordered
  const other = ordered.find((c) => !isCname(c))
  if (other === undefined && !isApex) return ordered
  const keepsCname = !isApex && isCname(ordered[0]!)
  const yielding = keepsCname ? other! : cname
  const beside = other === undefined ? 'the SOA' : printRival(other)
  const loser = keepsCname ? 'the CNAME is served' : 'the CNAME is not served'
  const text = `${printName(owner)}: CNAME of ${cname.key} beside ${beside}: ${loser}`
  conflicts.push(conflictAt(yielding, text))
  return ordered.filter((c) => {
    if (isCname(c) === keepsCname) return true
    report?.dropped(c, { kind: 'cname', by: (keepsCname ? cname : (other ?? c)).key })
    return false
  })
}

function printRival({ endpoint, key }: Contribution): string {
  const type = printType(endpoint.type)
  return key === DEFAULT_KEY ? `the SOA and the default ${type}` : `${type} of ${key}`
}

/** A conflict that the record of the contribution is reported for. */
export function conflictAt({ key, endpoint }: Contribution, text: string): Conflict {
  return { text, key, owner: endpoint.owner, type: endpoint.type }
}

function buildSet(
  owner: Uint8Array,
  type: number,
  members: readonly Contribution[],
  { settings, report }: BuildRules,
  conflicts: Conflict[],
): OwnerSet {
  const label = (): string => `${printName(owner)} ${printType(type)}`
  const all = members.length === 1 ? members : mergeEqual(members, label, conflicts, report)
  const unique = cutToFit(all)
  if (unique.length < all.length) {
    const text = `${label()}: more than ${unique.length} endpoints (${all.length}); only the first ${unique.length} are served`
    conflicts.push(conflictAt(all[unique.length]!, text))
    for (const cut of all.slice(unique.length)) report?.dropped(cut, { kind: 'cut' })
  }
  const ttlSeconds = lowestTtl(members, label, conflicts)
  const rdata: Uint8Array[] = []
  const drainedCount = unique.filter((member) => isDrained(member) && isOut(member)).length
  const allDown = unique.every(isOut) ? settleAllDown(unique, settings.allDown) : undefined
  if (allDown !== undefined && allDown.policy !== OPEN) {
    return buildLastResort(type, ttlSeconds, unique, { allDown, drainedCount, report })
  }
  const indexes = indexTargets(unique, allDown === undefined ? 'in service' : 'all', rdata)
  const weights = weightsOf(unique)
  const shift = unique.some((member) => isTarget(member, settings)) ? settings.shift : undefined
  const candidates: Candidate[] = []
  const built: Member[] = []
  for (const [i, contribution] of unique.entries()) {
    const { endpoint } = contribution
    const rdataIndexes = indexes[i]!
    if (rdataIndexes.length === 0) {
      built.push({ endpoint, candidates: [] })
      continue
    }
    const weight = weights === undefined ? endpoint.weight : weights[i]
    const { sticky } = settings
    const seed = sticky === undefined ? undefined : stickySeed(owner, identityOf(endpoint))
    const part = partOf(contribution, shift)
    const { point } = endpoint
    const common = { point, weight, ttlSeconds, rdataIndexes, seed, shift: part }
    const own = candidatesOf(endpoint, common)
    candidates.push(...own)
    built.push({ endpoint, candidates: own, units: contribution.units })
  }
  const { failover, reserve, exhausted } = settleFailover(unique, built, settings, rdata)
  const isReserve = ({ endpoint }: Member): boolean => endpoint === reserve?.endpoint
  const endpoints =
    reserve === undefined ? built : built.map((one) => (isReserve(one) ? reserve : one))
  if (report !== undefined) reportMembers(unique, endpoints, report)
  const { sticky } = settings
  const pointSets = settlePoints(unique, label, conflicts)
  const rules = { sticky, failover, exhausted, pointSets, allDown, shift }
  return { type, ttlSeconds, rdata, candidates, endpoints, ...rules, drainedCount }
}

function reportMembers(
  members: readonly Contribution[],
  built: readonly Member[],
  report: BuildReport,
): void {
  for (const [i, contribution] of members.entries()) {
    const { candidates } = built[i]!
    if (candidates.length > 0) report.kept(contribution, candidates)
    else report.dropped(contribution, dropOf(contribution))
  }
}

/**
 * Returns one candidate per code. They share one array, which identifies them as one endpoint to
 * the tiers.
 */
function candidatesOf(
  { codes, isDefault }: Endpoint,
  { point, weight, ttlSeconds, rdataIndexes, seed, shift }: Omit<Candidate, 'code' | 'isDefault'>,
): Candidate[] {
  // Fields are listed by name, because properties after a spread cost a microsecond.
  const candidates: Candidate[] = codes.map((code) => {
    return { code, isDefault: false, point, weight, ttlSeconds, rdataIndexes, seed, shift }
  })
  if (codes.length > 0 && !isDefault) return candidates
  const code = undefined
  candidates.push({ code, isDefault, point, weight, ttlSeconds, rdataIndexes, seed, shift })
  return candidates
}

function isTarget({ endpoint }: Contribution, { shift }: Pick<OwnerSettings, 'shift'>): boolean {
  return shift !== undefined && endpoint.setIdentifier === shift.to
}

function partOf(member: Contribution, shift: ShiftState | undefined): CandidateShift | undefined {
  if (shift?.percent === undefined) return undefined
  return { isTarget: isTarget(member, { shift }), percent: shift.percent }
}

/** What A and AAAA endpoints of one site have in common, else the content of the endpoint. */
function identityOf({ setIdentifier, rdata }: Endpoint): string | Uint8Array {
  if (setIdentifier !== '') return setIdentifier
  // The order of the targets means nothing.
  return Buffer.concat([...rdata].sort(Buffer.compare))
}

/** True if no target of the endpoint is in service. */
function isOut(member: Contribution): boolean {
  const { rdata } = member.endpoint
  if (!isDrained(member)) return member.down.size >= rdata.length
  return rdata.every((_, index) => isTargetOut(member, index))
}

function mostUnits(one: Contribution, other: Contribution): number | undefined {
  if (one.units === undefined || other.units === undefined) return undefined
  return Math.max(one.units, other.units)
}

/**
 * Returns scaled weights; undefined = no endpoint is in slow start, and the endpoints' weights
 * apply.
 */
function weightsOf(members: readonly Contribution[]): readonly (number | undefined)[] | undefined {
  if (members.every((member) => member.units === undefined)) return undefined
  const weights = members.map((member) => member.endpoint.weight)
  const units = members.map((member) => member.units ?? SLOW_START_UNITS)
  return scaleWeights(weights, units)
}

/** Returns the first members whose candidates and targets fit into a set. */
function cutToFit(members: readonly Contribution[]): readonly Contribution[] {
  let candidates = 0
  let targets = 0
  for (const [i, { endpoint }] of members.entries()) {
    candidates += endpoint.codes.length + 1
    targets += endpoint.rdata.length
    if (candidates > CANDIDATES_MAX || targets > CANDIDATES_MAX) return members.slice(0, i)
  }
  return members
}

/** Merges equal endpoints; the first of contradicting endpoints is kept. */
function mergeEqual(
  members: readonly Contribution[],
  label: () => string,
  conflicts: Conflict[],
  report: BuildReport | undefined,
): readonly Contribution[] {
  const identifiers = new Set(members.map((member) => member.endpoint.setIdentifier))
  if (identifiers.size === members.length) return members
  const kept = new Map<string, Contribution>()
  const bySetIdentifier = new Map<string, Contribution>()
  for (const member of members) {
    const content = contentKey(member.endpoint)
    const equal = kept.get(content)
    if (equal !== undefined) {
      kept.set(content, { ...equal, ...joinOut(equal, member), units: mostUnits(equal, member) })
      report?.dropped(member, { kind: 'merged', by: equal.key })
      continue
    }
    const { setIdentifier } = member.endpoint
    const namesake = setIdentifier === '' ? undefined : bySetIdentifier.get(setIdentifier)
    if (namesake !== undefined) {
      const text = `${label()}: set identifier ${JSON.stringify(setIdentifier)} differs between ${namesake.key} and ${member.key}: that of ${namesake.key} is served`
      conflicts.push(conflictAt(member, text))
      report?.dropped(member, { kind: 'contradicted', by: namesake.key })
      continue
    }
    kept.set(content, member)
    bySetIdentifier.set(setIdentifier, member)
  }
  return [...kept.values()]
}

function contentKey(endpoint: Endpoint): string {
  const rdata = endpoint.rdata.map((r) => Buffer.from(r).toString('latin1')).sort()
  const codes = endpoint.codes.map((code) => code.text).sort()
  const { setIdentifier, weight, isDefault, point } = endpoint
  return JSON.stringify([setIdentifier, weight, isDefault, point?.text, codes, rdata])
}

/**
 * A target of two equal endpoints is out if it is out in both, and down if it is down in both. The
 * result has the indexes of `a`; the endpoints may have their targets in different orders.
 */
function joinOut(a: Contribution, b: Contribution): Pick<Contribution, 'down' | 'drained'> {
  const down = new Set<number>()
  const drained = new Map<number, EndpointDrain>()
  if (!hasOut(a) || !hasOut(b)) return { down, drained: undefined }
  for (const [i, target] of a.endpoint.rdata.entries()) {
    if (!isTargetOut(a, i)) continue
    const j = b.endpoint.rdata.findIndex((other) => equalRdata(other, target))
    if (!isTargetOut(b, j)) continue
    const ours = a.drained?.get(i)
    const theirs = b.drained?.get(j)
    const drain = ours ?? theirs
    const isDown = a.down.has(i) && b.down.has(j)
    if (isDown) down.add(i)
    if (drain !== undefined && (!isDown || (ours && theirs))) drained.set(i, drain)
  }
  return { down, drained: drained.size === 0 ? undefined : drained }
}

function hasOut(member: Contribution): boolean {
  return member.down.size > 0 || isDrained(member)
}

function lowestTtl(
  members: readonly Contribution[],
  label: () => string,
  conflicts: Conflict[],
): number {
  const first = members[0]!
  let lowest = first
  let odd: Contribution | undefined
  for (const member of members) {
    if (member.endpoint.ttlSeconds !== first.endpoint.ttlSeconds) odd ??= member
    if (member.endpoint.ttlSeconds < lowest.endpoint.ttlSeconds) lowest = member
  }
  if (odd !== undefined) {
    const text = `${label()}: TTL ${first.endpoint.ttlSeconds} in ${first.key} and ${odd.endpoint.ttlSeconds} in ${odd.key}: ${lowest.endpoint.ttlSeconds} is served`
    conflicts.push(conflictAt(odd, text))
  }
  return lowest.endpoint.ttlSeconds
}
