import { ANSWERS_SIGNED_MAX, countSelections, selections } from './answer-numbers.ts'
import { decodeSteering } from './decode.ts'
import type { Tier, TierOutcome } from './tiers.ts'

/** One answer that clients of a steered set can get. */
export interface PossibleAnswer {
  readonly ttlSeconds: number
  /** Without duplicates; empty = NODATA. */
  readonly rdataIndexes: readonly number[]
}

/** All answers that clients of a steered set can get. */
export interface PossibleAnswers {
  /** By the number that a steerer gives an answer (`Choice.answer`). Some may be equal. */
  readonly answers: readonly PossibleAnswer[]
  /**
   * Number of the answer for transfers: that of clients that no code matches, with the greatest weights. If it has no
   * records, another one that has.
   */
  readonly default: number
}

/**
 * Returns the possible answers of encoded steering (see `encodeSteering`), at most ANSWERS_SIGNED_MAX. Undefined = the
 * set has more, so that a signed zone can't have it.
 */
export function possibleAnswers(words: Uint32Array): PossibleAnswers | undefined {
  const { tiers, answers: picksOf } = decodeSteering(words, 0)
  const single = tiers.filter((_, t) => picksOf[t] === 1).flat()
  // Equal outcomes are one answer. A map keeps the order in which they came.
  const numbered = new Map(single.map((outcome) => [keyOf(outcome), outcome]))
  const several = tiers.flatMap((tier, t) => (picksOf[t] === 1 ? [] : { tier, picks: picksOf[t]! }))
  const count = several.reduce(
    (sum, { tier, picks }) => sum + countSelections(tier.length, picks),
    numbered.size,
  )
  if (count > ANSWERS_SIGNED_MAX) return undefined
  const answers = [...numbered.values()].map(({ ttlSeconds, rdataIndexes }): PossibleAnswer => {
    return { ttlSeconds, rdataIndexes }
  })
  for (const { tier, picks } of several) {
    for (const chosen of selections(tier.length, picks)) {
      answers.push(unite(chosen.map((i) => tier[i]!)))
    }
  }
  const usual = heaviest(tiers.at(-1)!, picksOf.at(-1)!)
  return { answers, default: numberOf(usual, answers) }
}

/** Returns why a signed zone can't have a steered set, for an error that names the set; undefined = it can. */
export function signingProblem(words: Uint32Array): string | undefined {
  if (possibleAnswers(words) !== undefined) return undefined
  return (
    `has more than ${ANSWERS_SIGNED_MAX} possible answers, and each needs a signature: ` +
    'use fewer endpoints, or other `answers`'
  )
}

/** Returns the answer of the `picks` outcomes with the greatest weights. */
function heaviest(tier: Tier, picks: number): PossibleAnswer {
  const outcomes = tier.toSorted((a, b) => b.weight - a.weight).slice(0, picks)
  return outcomes.length === 1 ? outcomes[0]! : unite(outcomes)
}

/** Returns the number of `answer`, or if it has no records, of the first answer that has. */
function numberOf(answer: PossibleAnswer, answers: readonly PossibleAnswer[]): number {
  const hasRecords = ({ rdataIndexes }: PossibleAnswer): boolean => rdataIndexes.length > 0
  const key = keyOf(answer)
  const number = answers.findIndex(hasRecords(answer) ? (one) => keyOf(one) === key : hasRecords)
  return Math.max(number, 0)
}

function unite(outcomes: readonly TierOutcome[]): PossibleAnswer {
  const indexes = new Set(outcomes.flatMap(({ rdataIndexes }) => rdataIndexes))
  return {
    ttlSeconds: Math.min(...outcomes.map(({ ttlSeconds }) => ttlSeconds)),
    rdataIndexes: [...indexes].sort((a, b) => a - b),
  }
}

function keyOf({ ttlSeconds, rdataIndexes }: PossibleAnswer): string {
  return `${ttlSeconds}:${rdataIndexes.join()}`
}
