import { countSelections } from './answer-numbers.ts'
import {
  ANSWER_SHIFT,
  ANSWERS_SHIFT,
  BLIND_TIER,
  CHOICE_MAX,
  COUNTED_TIER,
  countersOffset,
  firstAnswer,
  firstAnswerOffset,
  NO_POLICY,
  OUTCOME_COUNT_MASK,
  POLICY_WORD,
  RDATA_COUNT_MASK,
  STALE_TIER,
  STICKY_TIER,
  staleOffset,
  staleWords,
  TIER_COUNT_WORD,
  TIER_OFFSETS_WORD,
} from './encode.ts'
import { ANSWERS_MAX, STICKY_IPV4_BITS_MAX, STICKY_IPV6_BITS_MAX } from './rules.ts'

/**
 * True if `count` words at `words[offset]` are valid encoded steering for a set of `rdataCount`
 * rdata, so that every draw yields rdata of the set, or none. `keyCounts`: number of tier keys of each
 * policy.
 */
export function isEncodedSteering(
  words: Uint32Array,
  offset: number,
  count: number,
  rdataCount: number,
  keyCounts: readonly number[],
): boolean {
  if (count < TIER_OFFSETS_WORD) return false
  const policy = words[offset + POLICY_WORD]!
  const tiers = words[offset + TIER_COUNT_WORD]!
  const keys = policy === NO_POLICY ? 0 : keyCounts[policy]
  const head = TIER_OFFSETS_WORD + tiers
  if (keys === undefined || tiers !== keys + 1 || head > count) return false
  const set = words.subarray(offset, offset + count)
  for (let i = TIER_OFFSETS_WORD; i < head; i++) {
    if (!isTier(set, set[i]!, head, rdataCount)) return false
  }
  return areNumbered(set, set.subarray(TIER_OFFSETS_WORD, head))
}

/** True if the answers of valid tiers have the numbers of `encodeSteering`. */
function areNumbered(set: Uint32Array, tiers: Uint32Array): boolean {
  const outcomes: number[] = []
  for (const tier of tiers) {
    const head = set[tier]!
    const end = head >>> ANSWERS_SHIFT === 0 ? tier + 1 + (head & OUTCOME_COUNT_MASK) * 2 : 0
    for (let i = tier + 2; i < end; i += 2) {
      const outcome = set[i]!
      const number = set[outcome + 1]! >>> ANSWER_SHIFT
      if (number === outcomes.length) outcomes.push(outcome)
      else if (outcomes[number] !== outcome) return false
    }
  }
  let answers = outcomes.length
  for (const tier of tiers) {
    const picks = set[tier]! >>> ANSWERS_SHIFT
    if (picks === 0) continue
    const count = set[tier]! & OUTCOME_COUNT_MASK
    if (set[firstAnswerOffset(set, tier)] !== firstAnswer(answers, count, picks)) return false
    answers += countSelections(count, picks)
  }
  return true
}

/** True for a possible number of outcomes in an answer. */
function areAnswers(answers: number, outcomes: number): boolean {
  return answers === 0 || (answers > 1 && answers <= Math.min(outcomes, ANSWERS_MAX))
}

function isTier(set: Uint32Array, tier: number, head: number, rdataCount: number): boolean {
  if (tier < head || tier >= set.length) return false
  const marks = set[tier]! & ~OUTCOME_COUNT_MASK & (2 ** ANSWERS_SHIFT - 1)
  if ((marks & ~(STICKY_TIER | COUNTED_TIER | BLIND_TIER | STALE_TIER)) !== 0) return false
  const isSticky = (marks & STICKY_TIER) !== 0
  const outcomes = set[tier]! & OUTCOME_COUNT_MASK
  const answers = set[tier]! >>> ANSWERS_SHIFT
  if (!areAnswers(answers, outcomes)) return false
  // The rdata of several outcomes fit into a choice, as long as each is in it once.
  const indexMax = answers === 0 ? rdataCount : Math.min(rdataCount, CHOICE_MAX)
  const end = tier + 1 + outcomes * 2
  const isStale = (marks & STALE_TIER) !== 0
  const last = staleOffset(set, tier) + (isStale ? staleWords(outcomes) : 0)
  if (outcomes === 0 || last > set.length) return false
  if (isSticky && !arePrefixLengths(set[end]!)) return false
  for (let i = tier + 1, before = 0; i < end; i += 2) {
    const weightSum = set[i]!
    if (weightSum <= before || !isOutcome(set, set[i + 1]!, head, indexMax)) return false
    before = weightSum
  }
  return true
}

/**
 * Makes all outcomes of valid steering use the counter `counter`. The numbers of another process mean
 * other endpoints in this one. Returns false if there was nothing to change.
 */
export function replaceCounters(words: Uint32Array, offset: number, counter: number): boolean {
  const tiers = words[offset + TIER_COUNT_WORD]!
  let isChanged = false
  for (let i = 0; i < tiers; i++) {
    const tier = offset + words[offset + TIER_OFFSETS_WORD + i]!
    const head = words[tier]!
    if ((head & COUNTED_TIER) === 0) continue
    const first = countersOffset(words, tier)
    const counters = words.subarray(first, first + (head & OUTCOME_COUNT_MASK))
    isChanged ||= counters.some((number) => number !== counter)
    counters.fill(counter)
  }
  return isChanged
}

function arePrefixLengths(word: number): boolean {
  const ipv4Bits = word & 0xff
  const ipv6Bits = word >>> 8
  const isLong = ipv4Bits >= 1 && ipv6Bits >= 1
  return isLong && ipv4Bits <= STICKY_IPV4_BITS_MAX && ipv6Bits <= STICKY_IPV6_BITS_MAX
}

function isOutcome(set: Uint32Array, outcome: number, head: number, rdataCount: number): boolean {
  if (outcome < head || outcome + 2 > set.length) return false
  const indexes = set[outcome + 1]! & RDATA_COUNT_MASK
  const end = outcome + 2 + indexes
  const isSized = indexes <= CHOICE_MAX && end <= set.length
  if (!isSized || set[outcome]! >= 2 ** 31) return false
  for (let i = outcome + 2; i < end; i++) if (set[i]! >= rdataCount) return false
  return true
}
