import { assert } from '../base/assert.ts'
import { ANSWERS_MAX, type SetRules, type StickyPrefix } from './rules.ts'
import type { Tier, TierOutcome } from './tiers.ts'

/**
 * The encoded steering of one RRset, as the zone image stores it. Offsets count words from word 0
 * of the set.
 *
 *     word 0      policy: row of the policy table, or NO_POLICY where place doesn't matter (one tier)
 *     word 1      tier count, 1..2 * CANDIDATES_MAX + 1
 *     word 2…     per tier: its offset
 *     tier        outcome count n, 1..CANDIDATES_MAX
 *                 n × ┬ cumulative weight, 1..2^32-1, ascending: a draw below it and not below the
 *                     │ one before means this outcome; the last is the sum
 *                     └ offset of the outcome
 *                 n has in its bits from ANSWERS_SHIFT how many outcomes a client gets, 2..n; 0 = one. If it is
 *                 not 0, all indexes of rdata are below CHOICE_MAX
 *                 in a sticky tier, whose n is marked with STICKY_TIER:
 *                 prefix lengths: IPv6 << 8 | IPv4
 *                 n × seed, two words
 *                 in a counted tier, whose n is marked with COUNTED_TIER:
 *                 n × number of the counter
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

/** The bits of a tier's first word that are its outcome count; the others mark what follows. */
export const OUTCOME_COUNT_MASK = 0xffff
export const STICKY_TIER = 0x10000
export const COUNTED_TIER = 0x20000
export const ANSWERS_SHIFT = 24

/** Maximum of rdata in one choice: the capacity of `Choice.index`. */
export const CHOICE_MAX = 4096

/**
 * Returns the encoded steering of a set. `policy`: row of the policy table, or NO_POLICY. `rules`: with
 * `sticky`, every outcome has a seed; `answers` is undefined for types that allow one record per name.
 * `counters`: by tier, the counter of each outcome; undefined = outcomes are not counted.
 */
export function encodeSteering(
  policy: number,
  tiers: readonly Tier[],
  { sticky, answers = 1 }: Pick<SetRules, 'sticky' | 'answers'> = {},
  counters?: readonly (readonly number[])[],
): Uint32Array {
  assert(answers >= 1 && answers <= ANSWERS_MAX, 'answers is 1..ANSWERS_MAX')
  const words: number[] = [policy, tiers.length, ...tiers.map(() => 0)]
  const offsetByOutcome = new Map<string, number>()
  const offsetsOfTiers = tiers.map((tier) =>
    tier.map((outcome) => appendOutcome(words, offsetByOutcome, outcome)),
  )
  for (const [t, tier] of tiers.entries()) {
    words[TIER_OFFSETS_WORD + t] = words.length
    const isSticky = sticky !== undefined && tier.length > 1
    const picks = answers > 1 && fitsChoice(tier) ? Math.min(answers, tier.length) : 1
    const several = picks > 1 ? picks << ANSWERS_SHIFT : 0
    const marks =
      several | (isSticky ? STICKY_TIER : 0) | (counters === undefined ? 0 : COUNTED_TIER)
    words.push(tier.length | marks)
    let sum = 0
    for (const [i, outcome] of tier.entries()) {
      sum += outcome.weight
      words.push(sum, offsetsOfTiers[t]![i]!)
    }
    if (isSticky) appendSeeds(words, tier, sticky)
    if (counters !== undefined) words.push(...counters[t]!)
  }
  return new Uint32Array(words)
}

/** True if all rdata of a tier together fit into a choice. Of a larger one, a client gets one outcome. */
function fitsChoice(tier: Tier): boolean {
  return tier.every(({ rdataIndexes }) => rdataIndexes.every((index) => index < CHOICE_MAX))
}

function appendSeeds(words: number[], tier: Tier, { ipv4Bits, ipv6Bits }: StickyPrefix): void {
  words.push((ipv6Bits << 8) | ipv4Bits)
  for (const { seed } of tier) {
    assert(seed !== undefined, 'an outcome of a sticky tier has a seed')
    words.push(...seed)
  }
}

/** Returns the offset of the counters in the counted tier at `tier`. */
export function countersOffset(words: Uint32Array, tier: number): number {
  const head = words[tier]!
  const count = head & OUTCOME_COUNT_MASK
  const end = tier + 1 + count * 2
  return (head & STICKY_TIER) === 0 ? end : end + 1 + count * 2
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
