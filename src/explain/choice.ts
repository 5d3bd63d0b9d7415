import { assert } from '../base/assert.ts'
import { GEO_RUNGS, scanGeoCode } from '../geo/code.ts'
import { type Location, ladderOf } from '../geo/location.ts'
import { type Coordinates, distanceKm } from '../geo/point.ts'
import { slowStartWeight } from '../health/slow-start-units.ts'
import type { Candidate } from '../steering/candidate.ts'
import { type FailoverList, servingGroup } from '../steering/failover.ts'
import type { TierKey } from '../steering/tier-key.ts'
import type { Tier } from '../steering/tiers.ts'
import type { TracedChoice } from '../steering/trace.ts'
import type { BuiltEndpoint, BuiltSet } from './endpoints.ts'
import type {
  ExplainedCandidate,
  ExplainedChoice,
  ExplainedDraw,
  ExplainedFailover,
  ExplainedPick,
  ExplainedRung,
  NearerEndpoint,
} from './explanation.ts'
import { findNearer } from './nearer.ts'
import { printPrefix } from './prefix.ts'
import { passedOverAt, type ReportedTiers, reportTiers } from './reported-tiers.ts'
import { ranksOf } from './sticky-ranks.ts'

/** The rungs whose codes depend on the client. */
const CLIENT_RUNGS = Object.entries(GEO_RUNGS).filter(([rung]) => rung !== 'default')

/** The choice of the steerer in the terms of the endpoints that the set was built from. */
export interface JoinedChoice {
  readonly choice: ExplainedChoice
  /** By endpoint: probability for this client. */
  readonly shares: ReadonlyMap<number, number>
  readonly chosen: ReadonlySet<number>
  /** By endpoint with a location: kilometres from the client, if the client's coordinates are known. */
  readonly distances: ReadonlyMap<number, number>
}

/**
 * Joins what the steerer did with the endpoints. Returns undefined if the set that was built is not
 * the one that the steerer saw, because the records changed in between.
 */
export function joinChoice(
  traced: TracedChoice,
  { set, endpoints }: BuiltSet,
  type: number,
  location: Location | undefined,
  matching: readonly string[],
): JoinedChoice | undefined {
  if (set === undefined || set.candidates.length === 0) return undefined
  const reported = reportTiers(set.candidates, type, set)
  const { steering, tier, sticky } = traced
  if (steering.tiers.length !== reported.keys.length + 1) return undefined
  const taken = steering.tiers[tier]!
  const members = reported.outcomes.get(tier) ?? []
  if (!areMembers(taken, members)) return undefined
  const indexes = indexesOf(endpoints)
  const indexOf = ({ rdataIndexes }: Candidate): number => indexes.get(rdataIndexes) ?? -1
  const ranks =
    sticky === undefined
      ? undefined
      : ranksOf(sticky, {
          ...{ type, members, answers: set.answers, hasStandbys: reported.standbys.has(tier) },
          builtFrom: (candidate) => endpoints[indexOf(candidate)]!,
        })
  const explain = (candidate: Candidate, share: number, rank?: number): ExplainedCandidate => {
    const endpoint = indexOf(candidate)
    const { endpoint: own, units } = endpoints[endpoint]!.contribution
    // The weights of candidates are multiplied during a slow start.
    const isWeighted = candidate.weight !== undefined
    const weight = isWeighted ? slowStartWeight(own.weight, units) : undefined
    return { endpoint, weight, share, isStandby: share === 0, rank }
  }
  const membersOf = (number: number): ExplainedCandidate[] => {
    const outcomes = steering.tiers[number]!
    const sum = outcomes.reduce((total, { weight }) => total + weight, 0)
    const active = (reported.outcomes.get(number) ?? []).flatMap((group, i) =>
      group.map((candidate) => {
        const rank = number === tier ? ranks?.[i] : undefined
        return explain(candidate, outcomes[i]!.weight / sum, rank)
      }),
    )
    const standbys = reported.standbys.get(number) ?? []
    return [...active, ...standbys.map((candidate) => explain(candidate, 0))]
  }
  const passed = (code: string): ExplainedCandidate[] =>
    passedOverAt(reported, code).map((candidate) => explain(candidate, 0))
  const isCoded =
    reported.keys.some(({ code }) => code !== undefined) ||
    endpoints.some(({ contribution }) => contribution.endpoint.codes.length > 0)
  const client = location?.coordinates
  const nearer = findNearer({ set, endpoints, reported, tier, client, indexOf })
  const parts = { reported, tier, isCoded, location, matching, membersOf, passed, nearer }
  const rungs = composeRungs(parts)
  const decided = rungs.findIndex(({ outcome }) => outcome === 'decided')
  const shares = new Map(rungs[decided]!.candidates.map(({ endpoint, share }) => [endpoint, share]))
  const picked = outcomesOf(traced)
  return {
    choice: {
      rungs,
      decided,
      draw: explainDraw(traced.draws[0]),
      picks: picked.length > 1 ? picked.map(explainPick(traced, members, indexOf)) : undefined,
      isSticky: sticky !== undefined,
      stickyPrefix: sticky === undefined ? undefined : printPrefix(sticky.prefix),
      failover: explainList(reported.lists.get(tier), traced),
    },
    shares,
    distances: distancesTo(endpoints, client),
    chosen: new Set(picked.flatMap((outcome) => members[outcome]!.map(indexOf))),
  }
}

/** By the rdata of a candidate: index of the endpoint that it was built from. */
function indexesOf(endpoints: readonly BuiltEndpoint[]): Map<readonly number[], number> {
  return new Map(
    endpoints.flatMap(({ candidates }, i) => candidates.map((c) => [c.rdataIndexes, i] as const)),
  )
}

function distancesTo(
  endpoints: readonly BuiltEndpoint[],
  client: Coordinates | undefined,
): Map<number, number> {
  const distances = new Map<number, number>()
  for (const [i, { contribution }] of endpoints.entries()) {
    const { point } = contribution.endpoint
    if (point === undefined || client === undefined) continue
    distances.set(i, Math.round(distanceKm(client, point)))
  }
  return distances
}

function explainList(
  list: FailoverList | undefined,
  { rdataIndexes }: TracedChoice,
): ExplainedFailover | undefined {
  if (list === undefined) return undefined
  const order = list.groups.map(({ name }) => name)
  const serving = servingGroup(list)?.name ?? ''
  return { order, serving, isClosed: rdataIndexes.length === 0 }
}

/** True if the outcomes of a tier have the rdata of these members. */
function areMembers(outcomes: Tier, members: readonly (readonly Candidate[])[]): boolean {
  return (
    outcomes.length === members.length &&
    outcomes.every(({ rdataIndexes }, i) => {
      const served = new Set(members[i]!.flatMap((member) => member.rdataIndexes))
      return rdataIndexes.every((index) => served.has(index))
    })
  )
}

/** Returns the function that explains the outcome `i` of several. */
function explainPick(
  { draws }: TracedChoice,
  members: readonly (readonly Candidate[])[],
  indexOf: (candidate: Candidate) => number,
): (outcome: number, i: number) => ExplainedPick {
  return (outcome, i) => {
    return { endpoint: indexOf(members[outcome]![0]!), draw: explainDraw(draws[i]) }
  }
}

function explainDraw(draw: TracedChoice['draws'][number] | undefined): ExplainedDraw | undefined {
  return draw === undefined ? undefined : { value: draw.value, below: draw.bound }
}

/** The outcomes that the steerer chose, in order: the first ones of the sticky order, or those drawn. */
function outcomesOf({ steering, tier, draws, sticky, rdataIndexes }: TracedChoice): number[] {
  const outcomes = steering.tiers[tier]!
  const answers = steering.answers[tier]!
  const found = sticky?.outcomes.slice(0, answers) ?? drawnOf(outcomes, answers, draws)
  const served = new Set(found.flatMap((outcome) => outcomes[outcome]!.rdataIndexes))
  const isSame = [...served].join() === rdataIndexes.join()
  assert(isSame, 'the outcomes have the rdata that the steerer chose')
  return found
}

/** Each draw means the first of the outcomes left whose cumulative weight exceeds it. */
function drawnOf(outcomes: Tier, answers: number, draws: TracedChoice['draws']): number[] {
  const left = outcomes.map((_, outcome) => outcome)
  return Array.from({ length: answers }, (_, i) => {
    let sum = 0
    const at = left.findIndex((outcome) => {
      sum += outcomes[outcome]!.weight
      return sum > (draws[i]?.value ?? 0)
    })
    return left.splice(at, 1)[0]!
  })
}

interface RungParts {
  readonly reported: ReportedTiers
  readonly tier: number
  /** False: no candidate has a geo code, so that the codes of the client do not matter. */
  readonly isCoded: boolean
  readonly location: Location | undefined
  /** Codes in use that match the client, in the order of the ladder. */
  readonly matching: readonly string[]
  membersOf(tier: number): ExplainedCandidate[]
  passed(code: string): ExplainedCandidate[]
  readonly nearer: readonly NearerEndpoint[]
}

/** Returns the rungs; the one that decided has the endpoints that are nearer. */
function composeRungs(parts: RungParts): ExplainedRung[] {
  const { nearer } = parts
  const rungs = composeLadder(parts)
  if (nearer.length === 0) return rungs
  return rungs.map((rung) => (rung.outcome === 'decided' ? { ...rung, nearer } : rung))
}

function composeLadder(parts: RungParts): ExplainedRung[] {
  const { reported, tier } = parts
  const rungs: ExplainedRung[] = []
  for (const [rung, name] of parts.isCoded ? CLIENT_RUNGS : []) {
    const codes = codesOn(rung, parts)
    if (codes.length === 0) rungs.push({ rung: name, code: '', outcome: 'no code', candidates: [] })
    for (const code of codes) {
      const isAfter = rungs.some(({ outcome }) => outcome === 'decided')
      rungs.push({ rung: name, code, ...outcomeAt(code, isAfter, parts) })
    }
  }
  if (reported.keys.some(isNearest)) rungs.push(nearestRung(parts))
  const last = reported.keys.length
  const outcome = tier === last ? 'decided' : 'not reached'
  const candidates = parts.membersOf(last)
  const passed = parts.passed('')
  if (reported.hasDefault && passed.length === 0) {
    rungs.push({ rung: 'default', code: '*', outcome, candidates })
    return rungs
  }
  const skipped = passed.length > 0 ? 'passed over' : 'no endpoint'
  if (parts.isCoded || passed.length > 0)
    rungs.push({ rung: 'default', code: '*', outcome: skipped, candidates: passed })
  rungs.push({ rung: 'whole set', code: '', outcome, candidates })
  return rungs
}

/** `isAfter`: an earlier rung has decided. */
function outcomeAt(
  code: string,
  isAfter: boolean,
  { reported, tier, membersOf, passed }: RungParts,
): Pick<ExplainedRung, 'outcome' | 'nearest' | 'candidates'> {
  const decided = reported.keys[tier]
  if (decided?.code?.text === code) {
    return { outcome: 'decided', nearest: decided.point?.text, candidates: membersOf(tier) }
  }
  const number = reported.keys.findIndex(({ text }) => text === code)
  // The server looked the client up with other data than the database has now.
  if (number !== -1) {
    return { outcome: isAfter ? 'not reached' : 'not matched', candidates: membersOf(number) }
  }
  const skipped = passed(code)
  if (skipped.length > 0) return { outcome: 'passed over', candidates: skipped }
  return { outcome: 'no endpoint', candidates: [] }
}

/** True for a tier of clients that no code matches and whose coordinates are known. */
function isNearest({ code }: TierKey): boolean {
  return code === undefined
}

function nearestRung({ reported, tier, location, membersOf }: RungParts): ExplainedRung {
  const rung = { rung: 'nearest', code: '' } as const
  const decided = reported.keys[tier]
  if (decided !== undefined) {
    if (!isNearest(decided)) return { ...rung, outcome: 'not reached', candidates: [] }
    const nearest = decided.point?.text
    return { ...rung, outcome: 'decided', nearest, candidates: membersOf(tier) }
  }
  // The server looked the client up with other data than the database has now, or has too many points.
  const outcome = location?.coordinates === undefined ? 'no coordinates' : 'not matched'
  return { ...rung, outcome, candidates: [] }
}

/** The client's codes on a rung: those of its location, and those in use that its class matches. */
function codesOn(rung: string, { location, matching }: RungParts): string[] {
  const known = location === undefined ? [] : ladderOf(location)
  const all = [...known, ...matching.filter((code) => !known.includes(code))]
  return all.filter((code) => scanGeoCode(code)?.rung === rung)
}
