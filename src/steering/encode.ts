import { assert } from '../base/assert.ts'
import type { StickyPrefix } from './rules.ts'
import type { Tier, TierOutcome } from './tiers.ts'

/**
 * The encoded steering of one RRset, as the zone image stores it. Offsets count words from word 0
 * of the set.
 *
 *     word 0      policy: row of the policy table, or NO_POLICY where place doesn't matter (one tier)
 *     word 1      tier count, 1..CANDIDATES_MAX + 1
 *     word 2…     per tier: its offset
 *     tier        outcome count n, 1..CANDIDATES_MAX
 *                 n × ┬ cumulative weight, 1..2^32-1, ascending: a draw below it and not below the
 *                     │ one before means this outcome; the last is the sum
 *                     └ offset of the outcome
 *                 in a sticky tier, whose n is marked with STICKY_TIER:
 *                 prefix lengths: IPv6 << 8 | IPv4
 *                 n × seed, two words
 *     outcome     TTL in seconds
 *                 rdata count k, 0..CHOICE_MAX; 0 = the answer is NODATA
 *                 k × index of an rdata in the RRset
 *
 * Equal outcomes of different tiers are stored once.
 */
export const NO_POLICY = 0xffffffff

export const POLICY_WORD = 0
export const TIER_COUNT_WORD = 1
export const TIER_OFFSETS_WORD = 2

/** Marks the outcome count of a sticky tier; above CANDIDATES_MAX. */
export const STICKY_TIER = 0x10000

/** Maximum of rdata in one choice: the capacity of `Choice.index`. */
export const CHOICE_MAX = 4096

/**
 * Returns the encoded steering of a set. `policy`: row of the policy table, or NO_POLICY. `sticky`:
 * tiers choose by the client's prefix, and every outcome has a seed; undefined = tiers draw.
 */
export function encodeSteering(
  policy: number,
  tiers: readonly Tier[],
  sticky?: StickyPrefix,
): Uint32Array {
  const words: number[] = [policy, tiers.length, ...tiers.map(() => 0)]
  const offsetByOutcome = new Map<string, number>()
  const offsetsOfTiers = tiers.map((tier) =>
    tier.map((outcome) => appendOutcome(words, offsetByOutcome, outcome)),
  )
  for (const [t, tier] of tiers.entries()) {
    words[TIER_OFFSETS_WORD + t] = words.length
    const isSticky = sticky !== undefined && tier.length > 1
    words.push(isSticky ? tier.length + STICKY_TIER : tier.length)
    let sum = 0
    for (const [i, outcome] of tier.entries()) {
      sum += outcome.weight
      words.push(sum, offsetsOfTiers[t]![i]!)
    }
    if (!isSticky) continue
    words.push((sticky.ipv6Bits << 8) | sticky.ipv4Bits)
    for (const { seed } of tier) {
      assert(seed !== undefined, 'an outcome of a sticky tier has a seed')
      words.push(...seed)
    }
  }
  return new Uint32Array(words)
}

function appendOutcome(words: number[], known: Map<string, number>, outcome: TierOutcome): number {
  const indexes = outcome.rdataIndexes.slice(0, CHOICE_MAX)
  const key = `${outcome.ttlSeconds}:${indexes.join()}`
  const offset = known.get(key)
  if (offset !== undefined) return offset
  known.set(key, words.length)
  const added = words.length
  words.push(outcome.ttlSeconds, indexes.length)
  for (const index of indexes) words.push(index)
  return added
}
