import type { GeoCode } from '../geo/code.ts'
import type { Candidate } from './candidate.ts'
import type { TierKey } from './tier-key.ts'
import { isForOthers, type Tier, type TierReport, type Tiers } from './tiers.ts'

/** Counter of outcomes that have none of their own. */
export const OTHER_COUNTER = 0
/** Counter of outcomes without rdata: the answer is NODATA. */
export const NODATA_COUNTER = 1
/** Number of the first counter that `OutcomeCounters` may assign. */
export const FIRST_COUNTER = 2

/** One possible outcome of a choice, for its counter. */
export interface CountedOutcome {
  /** The text of the tier's key; `*` = the default candidates, '' = the whole set. */
  readonly tier: string
  /** The candidates that it serves; at least one. */
  readonly members: readonly Candidate[]
  /** Its probability for the clients of the tier to be the first choice: above 0, up to 1. */
  readonly share: number
}

/** Assigns a counter to each outcome of one set. Threads add 1 to it with each answer that begins with the outcome. */
export interface OutcomeCounters {
  /** Returns the number of the counter. */
  assign(outcome: CountedOutcome): number
}

/** Counts all outcomes of a set together with those of other sets. */
export const OTHER_COUNTERS: OutcomeCounters = { assign: () => OTHER_COUNTER }

/** Records which candidates each outcome serves. */
export class OutcomeMembers implements TierReport {
  readonly #members: (readonly Candidate[])[][] = []
  #isDefaultListed = false
  #isDefaultPassedOver = false

  passedOver(key: TierKey | undefined): void {
    if (key === undefined) this.#isDefaultPassedOver = true
  }

  standby(): void {}

  outcome(tier: number, members: readonly Candidate[]): void {
    const known = this.#members[tier]
    if (known === undefined) this.#members[tier] = [members]
    else known.push(members)
  }

  listed(_tier: number, { code }: { readonly code: GeoCode | undefined }): void {
    if (code === undefined) this.#isDefaultListed = true
  }

  /** Returns the counters of each outcome, by tier. `candidates`: those that were sorted. */
  assign(
    candidates: readonly Candidate[],
    { keys, tiers }: Tiers,
    counters: OutcomeCounters,
  ): number[][] {
    return tiers.map((tier, number) => {
      const name = keys[number]?.text ?? this.#lastTier(candidates)
      return this.#assignTier(number, tier, name, counters)
    })
  }

  #assignTier(number: number, tier: Tier, name: string, counters: OutcomeCounters): number[] {
    const sum = tier.reduce((total, { weight }) => total + weight, 0)
    return tier.map(({ weight }, i) => {
      const members = this.#members[number]![i]!
      if (members.length === 0) return NODATA_COUNTER
      return counters.assign({ tier: name, members, share: weight / sum })
    })
  }

  #lastTier(candidates: readonly Candidate[]): string {
    if (this.#isDefaultListed) return '*'
    return !this.#isDefaultPassedOver && candidates.some(isForOthers) ? '*' : ''
  }
}
