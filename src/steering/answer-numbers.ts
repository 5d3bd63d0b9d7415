import { ANSWERS_MAX } from './rules.ts'

/** Maximum of possible answers of one name and type in a signed zone: each has signatures. */
export const ANSWERS_SIGNED_MAX = 4096

/** More outcomes have more than ANSWERS_SIGNED_MAX pairs, and so have more than that many larger selections, or one. */
const OUTCOMES_MAX = 91
const ROW = ANSWERS_MAX + 1

/** By n and k: how many selections of k of n outcomes exist, up to 65535. */
const SELECTIONS = makeSelections()

function makeSelections(): Uint16Array {
  const table = new Uint16Array((OUTCOMES_MAX + 1) * ROW)
  for (let n = 0; n <= OUTCOMES_MAX; n++) {
    table[n * ROW] = 1
    for (let k = 1; k < ROW && n > 0; k++) {
      const sum = table[(n - 1) * ROW + k - 1]! + table[(n - 1) * ROW + k]!
      table[n * ROW + k] = Math.min(sum, 0xffff)
    }
  }
  return table
}

/**
 * Returns the number of a selection among all selections of equally many outcomes, in colexicographic order: 0 is that
 * of the first outcomes. `indexes`: `count` indexes of outcomes, ascending. The selections are at most
 * ANSWERS_SIGNED_MAX. @hot
 */
export function numberOfSelection(indexes: Uint16Array, count: number): number {
  let number = 0
  for (let i = 0; i < count; i++) number += SELECTIONS[indexes[i]! * ROW + i + 1]!
  return number
}

/** Returns how many selections of `picks` of `outcomes` outcomes exist; Infinity = more than ANSWERS_SIGNED_MAX. */
export function countSelections(outcomes: number, picks: number): number {
  const most = Math.min(picks, outcomes - picks)
  let count = 1
  for (let k = 0; k < most; k++) {
    count = (count * (outcomes - k)) / (k + 1)
    if (count > ANSWERS_SIGNED_MAX) return Number.POSITIVE_INFINITY
  }
  return count
}

/** Yields all selections of `picks` of `outcomes` outcomes, in the order of their numbers; each is ascending. */
export function* selections(outcomes: number, picks: number): Generator<readonly number[]> {
  const chosen = Array.from({ length: picks }, (_, i) => i)
  for (;;) {
    yield chosen
    // The first one with room moves up by one, and those before it back to the start.
    const at = chosen.findIndex((one, i) => one + 1 < (chosen[i + 1] ?? outcomes))
    if (at === -1) return
    chosen[at]! += 1
    for (let i = 0; i < at; i++) chosen[i] = i
  }
}
