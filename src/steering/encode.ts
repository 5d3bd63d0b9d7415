import { assert } from '../base/assert.ts'
import { ANSWERS_SIGNED_MAX, countSelections } from './answer-numbers.ts'
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
 *                 BLIND_TIER marks a tier whose choice ignores health
 *                 if a client gets several outcomes:
 *                 number of the first answer, or UNNUMBERED
 *                 in a stale tier, whose n is marked with STALE_TIER:
 *                 n bits, from bit 0 of the first word: 1 = the outcome has endpoints of a silent site
 *     outcome     TTL in seconds
 *                 number of the answer << ANSWER_SHIFT | rdata count k, 0..CHOICE_MAX; 0 = the answer is NODATA
 *                 k × index of an rdata in the RRset
 *
 * Equal outcomes of different tiers are stored once. The possible answers are numbered from 0, first the outcomes that
 * are answers by themselves, then by tier the selections of several outcomes (see answer-numbers.ts).
 */
export const NO_POLICY = 0xffffffff

export const POLICY_WORD = 0
export const TIER_COUNT_WORD = 1
export const TIER_OFFSETS_WORD = 2

/** The bits of a tier's first word that are its outcome count; the others mark what follows. */
export const OUTCOME_COUNT_MASK = 0xffff
export const STICKY_TIER = 0x10000
export const COUNTED_TIER = 0x20000
/** Its endpoints serve although all of them are out of service: replies say so. */
export const BLIND_TIER = 0x40000
/** It has endpoints of sites that are silent: replies with them say so. */
export const STALE_TIER = 0x80000
export const ANSWERS_SHIFT = 24

/** The bits of an outcome's second word that are its rdata count; those above are the number of the answer. */
export const RDATA_COUNT_MASK = 0xffff
export const ANSWER_SHIFT = 16

/** In place of a tier's first answer: with it, the set has more than ANSWERS_SIGNED_MAX answers. */
export const UNNUMBERED = 0xffffffff

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
  {
    sticky,
    answers = 1,
    ignoresHealth,
  }: Pick<SetRules, 'sticky' | 'answers' | 'ignoresHealth'> = {},
  counters?: readonly (readonly number[])[],
): Uint32Array {
  assert(answers >= 1 && answers <= ANSWERS_MAX, 'answers is 1..ANSWERS_MAX')
  const words: number[] = [policy, tiers.length, ...tiers.map(() => 0)]
  const picksOf = tiers.map((tier) => {
    return answers > 1 && fitsChoice(tier) ? Math.min(answers, tier.length) : 1
  })
  const outcomes = new OutcomeWords(words)
  const offsetsOfTiers = tiers.map((tier, t) => {
    return tier.map((outcome) => outcomes.append(outcome, picksOf[t] === 1))
  })
  let answerCount = outcomes.numbered
  for (const [t, tier] of tiers.entries()) {
    words[TIER_OFFSETS_WORD + t] = words.length
    const isSticky = sticky !== undefined && tier.length > 1
    const picks = picksOf[t]!
    const several = picks > 1 ? picks << ANSWERS_SHIFT : 0
    const marks =
      several |
      (isSticky ? STICKY_TIER : 0) |
      (counters === undefined ? 0 : COUNTED_TIER) |
      (ignoresHealth === true ? BLIND_TIER : 0) |
      (tier.some(({ isStale }) => isStale) ? STALE_TIER : 0)
    words.push(tier.length | marks)
    let sum = 0
    for (const [i, outcome] of tier.entries()) {
      sum += outcome.weight
      words.push(sum, offsetsOfTiers[t]![i]!)
    }
    if (isSticky) appendSeeds(words, tier, sticky)
    if (counters !== undefined) words.push(...counters[t]!)
    if (picks > 1) {
      words.push(firstAnswer(answerCount, tier.length, picks))
      answerCount += countSelections(tier.length, picks)
    }
    if ((marks & STALE_TIER) !== 0) words.push(...staleBits(tier))
  }
  return new Uint32Array(words)
}

/** Returns the first answer of a tier where a client gets `picks` outcomes. `before`: answers with lower numbers. */
export function firstAnswer(before: number, outcomes: number, picks: number): number {
  return before + countSelections(outcomes, picks) > ANSWERS_SIGNED_MAX ? UNNUMBERED : before
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

/**
 * Returns the offset of the first answer's number in the tier at `tier`. A client gets several outcomes of this tier.
 */
export function firstAnswerOffset(words: Uint32Array, tier: number): number {
  const head = words[tier]!
  const end = countersOffset(words, tier)
  return (head & COUNTED_TIER) === 0 ? end : end + (head & OUTCOME_COUNT_MASK)
}

/** Returns the offset of the bits of stale outcomes in the stale tier at `tier`. */
export function staleOffset(words: Uint32Array, tier: number): number {
  return firstAnswerOffset(words, tier) + (words[tier]! >>> ANSWERS_SHIFT === 0 ? 0 : 1)
}

/** Number of words for the bits of that many outcomes. */
export function staleWords(outcomes: number): number {
  return (outcomes + 31) >>> 5
}

function staleBits(tier: Tier): Uint32Array {
  const bits = new Uint32Array(staleWords(tier.length))
  for (const [i, { isStale }] of tier.entries()) if (isStale) bits[i >>> 5]! |= 1 << (i & 31)
  return bits
}

/** Appends outcomes to the words of a set, equal ones once. */
class OutcomeWords {
  readonly #words: number[]
  readonly #offsets = new Map<string, number>()
  readonly #numbered = new Set<number>()

  constructor(words: number[]) {
    this.#words = words
  }

  /** How many outcomes are numbered. */
  get numbered(): number {
    return this.#numbered.size
  }

  /** Returns the offset of an outcome. `isAnswer`: it is an answer by itself, which gets a number. */
  append({ ttlSeconds, rdataIndexes }: TierOutcome, isAnswer: boolean): number {
    const words = this.#words
    const indexes = rdataIndexes.slice(0, CHOICE_MAX)
    const key = `${ttlSeconds}:${indexes.join()}`
    const offset = this.#offsets.get(key) ?? words.length
    if (offset === words.length) {
      this.#offsets.set(key, offset)
      words.push(ttlSeconds, indexes.length)
      for (const index of indexes) words.push(index)
    }
    if (isAnswer && !this.#numbered.has(offset)) {
      words[offset + 1]! += this.#numbered.size << ANSWER_SHIFT
      this.#numbered.add(offset)
    }
    return offset
  }
}
