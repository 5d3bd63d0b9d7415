import {
  ANSWERS_SHIFT,
  NO_POLICY,
  OUTCOME_COUNT_MASK,
  POLICY_WORD,
  RDATA_COUNT_MASK,
  TIER_COUNT_WORD,
  TIER_OFFSETS_WORD,
} from './encode.ts'
import type { Tier, TierOutcome } from './tiers.ts'

/** The encoded steering of one RRset as objects, for explanations. */
export interface DecodedSteering {
  /** Number of the policy; undefined = the location of clients does not matter. */
  readonly policy: number | undefined
  readonly tiers: readonly Tier[]
  /** By tier: number of outcomes that a client gets, 1.. */
  readonly answers: readonly number[]
}

/** Decodes valid steering, which starts at `words[offset]` (see `encodeSteering`). */
export function decodeSteering(words: Uint32Array, offset: number): DecodedSteering {
  const policy = words[offset + POLICY_WORD]!
  const starts = Array.from({ length: words[offset + TIER_COUNT_WORD]! }, (_, i) => {
    return offset + words[offset + TIER_OFFSETS_WORD + i]!
  })
  return {
    policy: policy === NO_POLICY ? undefined : policy,
    tiers: starts.map((tier) => decodeTier(words, offset, tier)),
    answers: starts.map((tier) => words[tier]! >>> ANSWERS_SHIFT || 1),
  }
}

/** True if an outcome of the valid steering at `words[offset]` has no records. Without such, no answer is empty. */
export function hasEmptyOutcome(words: Uint32Array, offset: number): boolean {
  for (let t = 0; t < words[offset + TIER_COUNT_WORD]!; t++) {
    const tier = offset + words[offset + TIER_OFFSETS_WORD + t]!
    for (let i = 0; i < (words[tier]! & OUTCOME_COUNT_MASK); i++) {
      const outcome = offset + words[tier + 2 + i * 2]!
      if ((words[outcome + 1]! & RDATA_COUNT_MASK) === 0) return true
    }
  }
  return false
}

function decodeTier(words: Uint32Array, offset: number, tier: number): Tier {
  let sum = 0
  return Array.from({ length: words[tier]! & OUTCOME_COUNT_MASK }, (_, i): TierOutcome => {
    const before = sum
    sum = words[tier + 1 + i * 2]!
    const outcome = offset + words[tier + 2 + i * 2]!
    const first = outcome + 2
    const rdataCount = words[outcome + 1]! & RDATA_COUNT_MASK
    const rdataIndexes = [...words.subarray(first, first + rdataCount)]
    return { weight: sum - before, ttlSeconds: words[outcome]!, rdataIndexes }
  })
}
