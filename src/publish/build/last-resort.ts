import type { Candidate } from '../../steering/candidate.ts'
import { type AllDownPolicy, CLOSED, OPEN, type SetRules } from '../../steering/rules.ts'
import type { StickySeed } from '../../steering/sticky.ts'
import type { AllDown, BuildReport, Contribution, Drop, Member, OwnerSet } from './owner-set.ts'
import { indexTargets, isWhollyDrained } from './target-indexes.ts'

/** Returns what serves a set whose members are all out. */
export function settleAllDown(members: readonly Contribution[], policy: AllDownPolicy): AllDown {
  if (policy === OPEN || policy === CLOSED) return { policy }
  const fallbacks = members.filter(({ endpoint }) => endpoint.setIdentifier === policy)
  if (fallbacks.length === 0) return { policy: OPEN, missing: policy }
  return fallbacks.every(isWhollyDrained) ? { policy, isDrained: true } : { policy }
}

/** What fallback endpoints need to serve. */
export interface ReserveParts {
  /** Receives their targets. */
  readonly rdata: Uint8Array[]
  /** Identifies endpoints in a sticky set. */
  readonly seedOf: (member: Contribution) => StickySeed | undefined
}

/**
 * Returns the candidate of a fallback endpoint that serves all clients alike, with its targets that are
 * not drained; empty = all of them are.
 */
export function reserveOf(
  member: Contribution,
  ttlSeconds: number,
  { rdata, seedOf }: ReserveParts,
): readonly Candidate[] {
  if (isWhollyDrained(member)) return []
  const rdataIndexes = indexTargets([member], 'not drained', rdata)[0]!
  const seed = seedOf(member)
  const weight = undefined
  const candidate = { code: undefined, isDefault: false, weight, ttlSeconds, rdataIndexes, seed }
  return [member.isSilent === true ? { ...candidate, isStale: true } : candidate]
}

interface LastResort extends Pick<OwnerSet, 'drainedCount'>, Pick<SetRules, 'sticky' | 'answers'> {
  readonly allDown: AllDown
  readonly seedOf: ReserveParts['seedOf']
  readonly report: BuildReport | undefined
}

/**
 * Returns the set that serves all clients alike: nothing, or the fallback endpoints with their targets
 * that are not drained.
 */
export function buildLastResort(
  type: number,
  ttlSeconds: number,
  members: readonly Contribution[],
  { allDown, drainedCount, sticky, answers, seedOf, report }: LastResort,
): OwnerSet {
  const rdata: Uint8Array[] = []
  const isFallback = ({ endpoint }: Contribution): boolean => {
    return endpoint.setIdentifier === allDown.policy && allDown.isDrained !== true
  }
  const isAlone = members.filter(isFallback).length === 1
  const parts = { rdata, seedOf: isAlone ? () => undefined : seedOf }
  const endpoints = members.map((member): Member => {
    const { endpoint } = member
    const candidates = isFallback(member) ? reserveOf(member, ttlSeconds, parts) : []
    if (candidates.length > 0) report?.kept(member, candidates)
    else report?.dropped(member, dropOf(member))
    return { endpoint, candidates }
  })
  const candidates = endpoints.flatMap((member) => member.candidates)
  const rules = isAlone ? { allDown } : { allDown, sticky, answers }
  return { type, ttlSeconds, rdata, candidates, endpoints, ...rules, drainedCount }
}

/** Why an endpoint without a target in service is dropped. */
export function dropOf({ drained }: Contribution): Drop {
  const [drain] = drained?.values() ?? []
  return drain === undefined ? { kind: 'down' } : { kind: 'drained', drain }
}
