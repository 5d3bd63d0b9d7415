import type { Candidate } from '../steering/candidate.ts'
import { type AllDownPolicy, CLOSED, OPEN } from '../steering/rules.ts'
import type { Member } from './failover-lists.ts'
import type { AllDown, BuildReport, Contribution, Drop, OwnerSet } from './owner-sets.ts'
import { indexTargets, isWhollyDrained } from './target-indexes.ts'

/** Returns what serves a set whose members are all out. */
export function settleAllDown(members: readonly Contribution[], policy: AllDownPolicy): AllDown {
  if (policy === OPEN || policy === CLOSED) return { policy }
  const fallback = members.find(({ endpoint }) => endpoint.setIdentifier === policy)
  if (fallback === undefined) return { policy: OPEN, missing: policy }
  return isWhollyDrained(fallback) ? { policy, isDrained: true } : { policy }
}

interface LastResort extends Pick<OwnerSet, 'drainedCount'> {
  readonly allDown: AllDown
  readonly report: BuildReport | undefined
}

/**
 * Returns the set that serves all clients alike: nothing, or the fallback endpoint with its targets
 * that are not drained.
 */
export function buildLastResort(
  type: number,
  ttlSeconds: number,
  members: readonly Contribution[],
  { allDown, drainedCount, report }: LastResort,
): OwnerSet {
  const rdata: Uint8Array[] = []
  const candidates: Candidate[] = []
  const endpoints: Member[] = []
  for (const member of members) {
    const { endpoint } = member
    if (endpoint.setIdentifier !== allDown.policy || allDown.isDrained === true) {
      endpoints.push({ endpoint, candidates: [] })
      report?.dropped(member, dropOf(member))
      continue
    }
    const rdataIndexes = indexTargets([member], 'not drained', rdata)[0]!
    const weight = undefined
    const candidate = { code: undefined, isDefault: false, weight, ttlSeconds, rdataIndexes }
    candidates.push(candidate)
    endpoints.push({ endpoint, candidates: [candidate] })
    report?.kept(member, [candidate])
  }
  return { type, ttlSeconds, rdata, candidates, endpoints, allDown, drainedCount }
}

/** Why an endpoint without a target in service is dropped. */
export function dropOf({ drained }: Contribution): Drop {
  const [drain] = drained?.values() ?? []
  return drain === undefined ? { kind: 'down' } : { kind: 'drained', drain }
}
