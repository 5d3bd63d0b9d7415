import type { Candidate } from '../steering/candidate.ts'
import type { StickyOrder } from '../steering/sticky-order.ts'
import { isSingleton } from '../steering/tiers.ts'
import type { BuiltEndpoint } from './endpoints.ts'

/** The tier of a sticky choice. */
interface StickyTier {
  readonly type: number
  /** Members of each outcome. */
  readonly members: readonly (readonly Candidate[])[]
  readonly hasStandbys: boolean
  /** Undefined = the set has no `answers`. */
  readonly answers: number | undefined
  builtFrom(candidate: Candidate): BuiltEndpoint
}

/**
 * Returns the rank of each outcome of a tier: 1 serves the client (with `answers`, the first ranks), and each
 * other one serves once those of lower ranks are drained or down. Outcomes that serve together then have the same
 * rank. Undefined = the order is not known, because a shift changes the weights of the others when an endpoint
 * leaves.
 */
export function ranksOf(
  { outcomes }: StickyOrder,
  { type, members, hasStandbys, answers, builtFrom }: StickyTier,
): readonly number[] | undefined {
  const groups = new Set(members.flatMap((group) => group.map(({ shift }) => shift?.isTarget)))
  if (groups.size > 1) return undefined
  const isWeighted = (outcome: number): boolean =>
    members[outcome]!.some((candidate) => {
      const { endpoint, units } = builtFrom(candidate).contribution
      return endpoint.weight !== undefined || units !== undefined
    })
  // Endpoints without a weight serve together as soon as no other member of the tier has a weight, unless the
  // number of answers is limited.
  const isEach = hasStandbys || answers !== undefined || isSingleton(type)
  const lastAlone = isEach ? outcomes.length : outcomes.findLastIndex(isWeighted) + 1
  const ranks = Array<number>(outcomes.length)
  for (const [place, outcome] of outcomes.entries()) {
    ranks[outcome] = Math.min(place, lastAlone) + 1
  }
  return ranks
}
