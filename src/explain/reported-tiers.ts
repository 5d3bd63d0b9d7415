import type { Candidate } from '../steering/candidate.ts'
import type { FailoverList } from '../steering/failover.ts'
import type { SetRules } from '../steering/rules.ts'
import type { TierKey } from '../steering/tier-key.ts'
import { isForOthers, sortIntoTiers, type TierReport } from '../steering/tiers.ts'

/** The tiers of a set, with the candidates of each outcome. */
export interface ReportedTiers {
  /** Of all tiers but the last. */
  readonly keys: readonly TierKey[]
  /** By tier: the members of each outcome, in the order of the outcomes. */
  readonly outcomes: ReadonlyMap<number, (readonly Candidate[])[]>
  readonly standbys: ReadonlyMap<number, Candidate[]>
  /** Groups of standbys whose clients get another group. */
  readonly passedOver: readonly PassedOver[]
  readonly lists: ReadonlyMap<number, FailoverList>
  readonly hasDefault: boolean
}

interface PassedOver {
  /** Undefined = the default. */
  readonly key: TierKey | undefined
  readonly members: readonly Candidate[]
}

/** Sorts candidates as the publisher does, and returns what was decided about each. */
export function reportTiers(
  candidates: readonly Candidate[],
  type: number,
  rules: Pick<SetRules, 'failover' | 'answers'>,
): ReportedTiers {
  const outcomes = new Map<number, (readonly Candidate[])[]>()
  const standbys = new Map<number, Candidate[]>()
  const passedOver: PassedOver[] = []
  const lists = new Map<number, FailoverList>()
  const report: TierReport = {
    listed: (tier, list) => lists.set(tier, list),
    passedOver: (key, members) => passedOver.push({ key, members }),
    standby: (tier, member) => append(standbys, tier, member),
    outcome: (tier, members) => append(outcomes, tier, members),
  }
  const { keys } = sortIntoTiers(candidates, type, rules, report)
  const hasDefault = candidates.some(isForOthers) || lists.has(keys.length)
  return { keys, outcomes, standbys, passedOver, lists, hasDefault }
}

/** Returns the standbys that were passed over as a whole. `code`: '' = the default. */
export function passedOverAt({ passedOver }: ReportedTiers, code: string): readonly Candidate[] {
  return passedOver.find(({ key }) => (key?.text ?? '') === code)?.members ?? []
}

/** Returns the candidates of a tier, those that serve and the standbys. */
export function membersOfTier({ outcomes, standbys }: ReportedTiers, tier: number): Candidate[] {
  return [...(outcomes.get(tier) ?? []).flat(), ...(standbys.get(tier) ?? [])]
}

function append<T>(lists: Map<number, T[]>, key: number, one: T): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [one])
  else list.push(one)
}
