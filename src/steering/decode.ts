import {
  NO_POLICY,
  OUTCOME_COUNT_MASK,
  POLICY_WORD,
  STICKY_TIER,
  TIER_COUNT_WORD,
  TIER_OFFSETS_WORD,
} from './encode.ts'
import type { StickyPrefix } from './rules.ts'
import type { Tier, TierOutcome } from './tiers.ts'

/** The encoded steering of one RRset as objects, for explanations. */
export interface DecodedSteering {
  /** Number of the policy; undefined = the location of clients does not matter. */
  readonly policy: number | undefined
  readonly tiers: readonly Tier[]
  /** The prefix that chooses in tiers of several outcomes; undefined = they draw. */
  readonly sticky: StickyPrefix | undefined
}

/** Decodes valid steering, which starts at `words[offset]` (see `encodeSteering`). */
export function decodeSteering(words: Uint32Array, offset: number): DecodedSteering {
  const policy = words[offset + POLICY_WORD]!
  const tiers = Array.from({ length: words[offset + TIER_COUNT_WORD]! }, (_, i) => {
    return decodeTier(words, offset, offset + words[offset + TIER_OFFSETS_WORD + i]!)
  })
  const sticky = decodeSticky(words, offset, tiers)
  return { policy: policy === NO_POLICY ? undefined : policy, tiers, sticky }
}

function decodeSticky(
  words: Uint32Array,
  offset: number,
  tiers: readonly Tier[],
): StickyPrefix | undefined {
  for (const [i, { length }] of tiers.entries()) {
    const tier = offset + words[offset + TIER_OFFSETS_WORD + i]!
    if ((words[tier]! & STICKY_TIER) === 0) continue
    const bits = words[tier + 1 + length * 2]!
    return { ipv4Bits: bits & 0xff, ipv6Bits: bits >>> 8 }
  }
  return undefined
}

function decodeTier(words: Uint32Array, offset: number, tier: number): Tier {
  let sum = 0
  return Array.from({ length: words[tier]! & OUTCOME_COUNT_MASK }, (_, i): TierOutcome => {
    const before = sum
    sum = words[tier + 1 + i * 2]!
    const outcome = offset + words[tier + 2 + i * 2]!
    const first = outcome + 2
    const rdataIndexes = [...words.subarray(first, first + words[outcome + 1]!)]
    return { weight: sum - before, ttlSeconds: words[outcome]!, rdataIndexes }
  })
}
