import type { Random } from '../base/random.ts'
import type { Choice } from '../zone/image/types.ts'
import * as numbers from './answer-numbers.ts'
import * as layout from './encode.ts'
import { ANSWERS_MAX } from './rules.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { CHOICE_MAX, firstAnswerOffset, RDATA_COUNT_MASK, UNNUMBERED } = layout
const { numberOfSelection } = numbers

/** Several outcomes of one tier for one answer, each once. Reused. */
export class Picks {
  /** Number of outcomes to pick, and of those picked: 2..ANSWERS_MAX. */
  count = 0
  /** Indexes of the outcomes in the tier, in the order of the answer. */
  readonly index = new Uint16Array(ANSWERS_MAX)
  /** The score of each is score / weight, if a hash picks them. */
  readonly score = new Float64Array(ANSWERS_MAX)
  readonly weight = new Float64Array(ANSWERS_MAX)
  /** The same indexes, ascending: once they are drawn, or `answer` was called. */
  readonly #ascending = new Uint16Array(ANSWERS_MAX)
  /** By index of an rdata: the last choice that has it. */
  readonly #lastChoice = new Uint32Array(CHOICE_MAX)
  #choices = 0

  /**
   * Draws outcomes of the tier of `outcomes` at `tier`, one after the other, each time by weight among
   * those that are left. @hot
   */
  draw(words: Uint32Array, tier: number, outcomes: number, random: Random): void {
    const ascending = this.#ascending
    const most = this.count
    let left = words[tier + outcomes * 2 - 1]!
    for (let picked = 0; picked < most; picked++) {
      let drawn = random.below(left)
      // Moves the draw past the weights of the outcomes before it that are gone.
      let place = 0
      for (; place < picked; place++) {
        const gone = ascending[place]!
        const start = gone === 0 ? 0 : words[tier - 1 + gone * 2]!
        if (drawn < start) break
        drawn += words[tier + 1 + gone * 2]! - start
      }
      const found = findOutcome(words, tier, outcomes, drawn)
      left -= words[tier + 1 + found * 2]! - (found === 0 ? 0 : words[tier - 1 + found * 2]!)
      for (let i = picked; i > place; i--) ascending[i] = ascending[i - 1]!
      ascending[place] = found
      this.index[picked] = found
    }
  }

  /**
   * Sets `choice` to the rdata of the outcomes of the tier at `tier` that are picked, each rdata once, and to
   * the lowest TTL: all records of an RRset have one TTL (RFC 2181 section 5.2). @hot
   */
  fill(words: Uint32Array, offset: number, tier: number, choice: Choice): void {
    const lastChoice = this.#lastChoice
    if (this.#choices === 0xffffffff) {
      lastChoice.fill(0)
      this.#choices = 0
    }
    const number = ++this.#choices
    let filled = 0
    let ttlSeconds = 0x7fffffff
    for (let i = 0; i < this.count; i++) {
      const outcome = offset + words[tier + 2 + this.index[i]! * 2]!
      const ttl = words[outcome]!
      if (ttl < ttlSeconds) ttlSeconds = ttl
      const end = outcome + 2 + (words[outcome + 1]! & RDATA_COUNT_MASK)
      for (let at = outcome + 2; at < end; at++) {
        const rdata = words[at]!
        if (lastChoice[rdata] === number) continue
        lastChoice[rdata] = number
        choice.index[filled++] = rdata
      }
    }
    choice.count = filled
    choice.ttlSeconds = ttlSeconds
  }

  /** Returns the number of the answer that the picked outcomes of the tier at `tier` are; -1 = it has none. @hot */
  answer(words: Uint32Array, tier: number): number {
    const first = words[firstAnswerOffset(words, tier)]!
    if (first === UNNUMBERED) return -1
    const ascending = this.#ascending
    for (let picked = 0; picked < this.count; picked++) {
      const found = this.index[picked]!
      let place = picked
      for (; place > 0 && ascending[place - 1]! > found; place--) {
        ascending[place] = ascending[place - 1]!
      }
      ascending[place] = found
    }
    return first + numberOfSelection(ascending, this.count)
  }
}

/** Returns the index of the first outcome of the tier at `tier` whose cumulative weight exceeds the draw. @hot */
export function findOutcome(
  words: Uint32Array,
  tier: number,
  count: number,
  drawn: number,
): number {
  // low..high always contains it.
  let low = 0
  let high = count - 1
  while (low < high) {
    const middle = (low + high) >>> 1
    if (words[tier + 1 + middle * 2]! > drawn) high = middle
    else low = middle + 1
  }
  return low
}
