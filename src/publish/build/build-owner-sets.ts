import { printType, RRType } from '../../dns/iana/types.ts'
import { isSubdomain, printName } from '../../dns/name/name.ts'
import { decideServed } from '../../health/in-service.ts'
import type { ShiftState } from '../../health/shift/shift.ts'
import { SLOW_START_UNITS, scaleWeights } from '../../health/slow-start-units.ts'
import { ALIAS_TYPE, type Endpoint } from '../../records/dns-record.ts'
import { CANDIDATES_MAX, type Candidate, type CandidateShift } from '../../steering/candidate.ts'
import { OPEN } from '../../steering/rules.ts'
import { type StickySeed, stickySeed } from '../../steering/sticky.ts'
import { isSingleton } from '../../steering/tiers.ts'
import { contentKey, findNamesakes, mergeEqual } from './equal-endpoints.ts'
import { describeUnknown, settleFailover } from './failover-lists.ts'
import { buildLastResort, dropOf, settleAllDown } from './last-resort.ts'
import { findOutsideConflicts } from './names-outside.ts'
import type { BuildOptions, BuildReport, Contribution, Member, OwnerSet } from './owner-set.ts'
import { NO_SETTINGS, type OwnerSettings, settleSettings } from './owner-settings.ts'
import { settlePoints } from './point-sets.ts'
import { type Conflict, conflictAt } from './record-conflicts.ts'
import { settleCnames } from './settle-cnames.ts'
import { settleIdentifiers } from './settle-identifiers.ts'
import { settleTtl } from './settle-ttl.ts'
import { equalRdata, indexTargets, isDrained, isTargetOut } from './target-indexes.ts'

interface BuildRules {
  readonly settings: OwnerSettings
  readonly site: string
  /** See `findNamesakes`. */
  readonly namesakes: ReadonlySet<string>
  readonly report: BuildReport | undefined
}

/** The endpoints of one type. */
interface TypeMembers {
  readonly type: number
  readonly label: () => string
  readonly all: readonly Contribution[]
  /** Without equal and contradicting ones. */
  readonly distinct: readonly Contribution[]
}

/** What a name with nothing but an ALIAS without addresses has: it exists, and has no data. */
const EMPTY_SET: OwnerSet = {
  ...{ type: RRType.A, ttlSeconds: 0, rdata: [], candidates: [], endpoints: [], drainedCount: 0 },
}

/**
 * Returns the RRsets of one owner from all its endpoints, whatever record or site they are from.
 * `conflicts` receives one entry per conflict. `contributions`: in the order of their records
 * (`sortRecords`), which is the same at every site, then by place in the record.
 *
 * - CNAME beside other types: the type of the first contribution is served. At an apex, the CNAME is
 *   always removed.
 * - Equal endpoints are merged. If a site has different contents of a set identifier, those of the first record
 *   are served, of all types. Endpoints of different sites may have the same set identifier.
 * - An ALIAS endpoint is not served. The endpoints with its addresses are others (`aliasOf`).
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
  const { apex, site = '', report } = options
  if (apex !== undefined && !isSubdomain(owner, apex)) {
    conflicts.push(...findOutsideConflicts(owner, contributions, apex))
    return []
  }
  const alone = settleCnames(owner, contributions, options, conflicts)
  const settled = settleIdentifiers(owner, alone, options, conflicts)
  const settings = settleSettings(owner, settled, options.settings ?? NO_SETTINGS, conflicts)
  noteUnknown(owner, settled, settings, conflicts)
  const allowed = withoutAliases(settled, report)
  if (allowed.length === 0) return [EMPTY_SET]
  const types = groupByType(allowed).map((all): TypeMembers => {
    const { type } = all[0]!.endpoint
    const label = (): string => `${printName(owner)} ${printType(type)}`
    return { type, label, all, distinct: mergeEqual(all, label, conflicts, report) }
  })
  const namesakes = findNamesakes(types)
  const rules = { settings, site, namesakes, report }
  return types.map((members) => buildSet(owner, members, rules, conflicts))
}

/** `report` gets the ALIAS endpoints without addresses. */
function withoutAliases(
  contributions: readonly Contribution[],
  report: BuildReport | undefined,
): readonly Contribution[] {
  if (contributions.every(({ endpoint }) => endpoint.type !== ALIAS_TYPE)) return contributions
  for (const one of report === undefined ? [] : contributions) {
    if (one.endpoint.type !== ALIAS_TYPE) continue
    const isResolved = contributions.some(({ key, endpoint }) => {
      const { aliasOf } = endpoint
      return key === one.key && aliasOf !== undefined && equalRdata(aliasOf, one.endpoint.rdata[0]!)
    })
    if (!isResolved) report!.dropped(one, { kind: 'unresolved' })
  }
  return contributions.filter(({ endpoint }) => endpoint.type !== ALIAS_TYPE)
}

function groupByType(contributions: readonly Contribution[]): (readonly Contribution[])[] {
  const { type } = contributions[0]!.endpoint
  if (contributions.every(({ endpoint }) => endpoint.type === type)) return [contributions]
  const byType = new Map<number, Contribution[]>()
  for (const contribution of contributions) {
    const known = byType.get(contribution.endpoint.type)
    if (known === undefined) byType.set(contribution.endpoint.type, [contribution])
    else known.push(contribution)
  }
  return [...byType.values()]
}

/** Reports the entries of failover lists that no endpoint has, once all endpoints are known. */
function noteUnknown(
  owner: Uint8Array,
  contributions: readonly Contribution[],
  { failover }: OwnerSettings,
  conflicts: Conflict[],
): void {
  if (failover === undefined || contributions.some(({ isPartial }) => isPartial)) return
  const endpoints = contributions.map(({ endpoint }) => endpoint)
  const having = contributions.find(({ settings }) => settings?.failover === failover)!
  const unknown = describeUnknown(failover, endpoints, having.idleLines ?? [])
  if (unknown === '') return
  const text = `${printName(owner)}: failover names ${unknown}, which no endpoint has; correct the annotation (${having.place})`
  conflicts.push({ ...conflictAt(having, text), isProvisional: true })
}

function buildSet(
  owner: Uint8Array,
  { type, label, all, distinct }: TypeMembers,
  { settings, site, namesakes, report }: BuildRules,
  conflicts: Conflict[],
): OwnerSet {
  const unique = cutToFit(distinct)
  if (unique.length < distinct.length) {
    const kept = new Set(unique)
    const cut = distinct.filter((member) => !kept.has(member))
    const text = `${label()}: its ${distinct.length} endpoints have more than ${CANDIDATES_MAX} targets or geo codes: ${unique.length} endpoints are served; remove some`
    conflicts.push(conflictAt(cut[0]!, text))
    for (const member of cut) report?.dropped(member, { kind: 'cut' })
  }
  const ttlSeconds = settleTtl(all, site, label, conflicts)
  const pointSets = settlePoints(unique, label, conflicts)
  const rdata: Uint8Array[] = []
  const drainedCount = unique.filter((member) => isDrained(member) && isOut(member)).length
  const served = decideServed(unique, isOut)
  const allDown = served === 'all' ? settleAllDown(unique, settings.allDown) : undefined
  const { sticky } = settings
  const answers = isSingleton(type) || unique.length === 1 ? undefined : settings.answers
  const seedOf = (member: Contribution): StickySeed | undefined => {
    return sticky === undefined ? undefined : stickySeed(owner, identityOf(member, namesakes))
  }
  if (allDown !== undefined && allDown.policy !== OPEN) {
    const rest = { allDown, drainedCount, sticky, answers, seedOf, report }
    return buildLastResort(type, ttlSeconds, unique, rest)
  }
  const indexes = indexTargets(unique, served, rdata)
  const weights = weightsOf(unique)
  const shift = unique.some((member) => isTarget(member, settings)) ? settings.shift : undefined
  const candidates: Candidate[] = []
  const built: Member[] = []
  for (const [i, contribution] of unique.entries()) {
    const { endpoint, units } = contribution
    const namesakeOf = siteOfNamesake(contribution, namesakes)
    const rdataIndexes = indexes[i]!
    if (rdataIndexes.length === 0) {
      built.push({ endpoint, candidates: [], units: undefined, site: namesakeOf })
      continue
    }
    const weight = weights === undefined ? endpoint.weight : weights[i]
    const seed = seedOf(contribution)
    const part = partOf(contribution, shift)
    const { point } = endpoint
    const { isSilent: isStale } = contribution
    const common = { point, weight, ttlSeconds, rdataIndexes, seed, isStale, shift: part }
    const own = candidatesOf(endpoint, common)
    candidates.push(...own)
    built.push({ endpoint, candidates: own, units, site: namesakeOf })
  }
  const settled = settleFailover(unique, built, settings, { rdata, seedOf })
  const { failover, exhausted, endpoints } = settled
  if (report !== undefined) reportMembers(unique, endpoints, report)
  const rules = { sticky, answers, failover, exhausted, pointSets, allDown, shift }
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
  common: Omit<Candidate, 'code' | 'isDefault'>,
): Candidate[] {
  const { point, weight, ttlSeconds, rdataIndexes, seed, isStale, shift } = common
  // Fields are listed by name, because properties after a spread cost a microsecond.
  const candidates: Candidate[] = codes.map((code) => {
    return { code, isDefault: false, point, weight, ttlSeconds, rdataIndexes, seed, isStale, shift }
  })
  if (codes.length > 0 && !isDefault) return candidates
  const code = undefined
  candidates.push({
    code,
    isDefault,
    point,
    weight,
    ttlSeconds,
    rdataIndexes,
    seed,
    isStale,
    shift,
  })
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
function identityOf(member: Contribution, namesakes: ReadonlySet<string>): string | Uint8Array {
  const { setIdentifier, rdata } = member.endpoint
  if (setIdentifier !== '') {
    const site = siteOfNamesake(member, namesakes)
    return site === undefined ? setIdentifier : `${setIdentifier}\n${site}`
  }
  // The order of the targets means nothing.
  return Buffer.concat([...rdata].sort(Buffer.compare))
}

/** Returns the site of an endpoint if other sites have another endpoint with its set identifier. */
function siteOfNamesake(
  { endpoint, site }: Contribution,
  namesakes: ReadonlySet<string>,
): string | undefined {
  return namesakes.has(endpoint.setIdentifier) ? site : undefined
}

/** True if no target of the endpoint is in service. */
function isOut(member: Contribution): boolean {
  const { rdata } = member.endpoint
  if (!isDrained(member)) return member.down.size >= rdata.length
  return rdata.every((_, index) => isTargetOut(member, index))
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

/**
 * Returns the members whose candidates and targets fit into a set, in order. The first records have precedence. Inside
 * one record, the content decides, because other sites do not know the order there.
 */
function cutToFit(members: readonly Contribution[]): readonly Contribution[] {
  if (countFitting(members) === members.length) return members
  const keys = [...new Set(members.map(({ key }) => key))]
  const ranks = new Map(keys.map((key, rank) => [key, rank]))
  const ranked = members.map((member) => {
    return { member, rank: ranks.get(member.key)!, content: contentKey(member.endpoint) }
  })
  ranked.sort((a, b) => a.rank - b.rank || (a.content < b.content ? -1 : 1))
  const ordered = ranked.map(({ member }) => member)
  const kept = new Set(ordered.slice(0, countFitting(ordered)))
  return members.filter((member) => kept.has(member))
}

/** Returns how many of the first members fit into a set. */
function countFitting(members: readonly Contribution[]): number {
  let candidates = 0
  let targets = 0
  for (const [i, { endpoint }] of members.entries()) {
    candidates += endpoint.codes.length + 1
    targets += endpoint.rdata.length
    if (candidates > CANDIDATES_MAX || targets > CANDIDATES_MAX) return i
  }
  return members.length
}
