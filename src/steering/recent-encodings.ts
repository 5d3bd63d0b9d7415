import type { Candidate } from './candidate.ts'
import { isAddress, isSingleton } from './tiers.ts'

/** Larger sets are not cached: they are rare and seldom equal. */
const CANDIDATES_MAX = 16
const RECENT_MAX = 4096

/**
 * Caches encoded steering, keyed by all inputs of the encoding. The records of a cluster repeat a
 * few places and weights. A cache hit costs a fraction of an encoding.
 */
export class RecentEncodings {
  readonly #words = new Map<string, Uint32Array>()
  /** Arguments of the last call. The next call often has the same: comparing them costs less than making a key. */
  #lastCandidates: readonly Candidate[] = []
  #lastKind = ''
  #lastAnswers: number | undefined
  #lastWords: Uint32Array | undefined

  /**
   * Returns the encoded steering that `compose` makes for these candidates, from the cache if equal
   * candidates were encoded before. Of `type`, only the kind matters: `kindOf`.
   */
  find(
    candidates: readonly Candidate[],
    type: number,
    answers: number | undefined,
    compose: Compose,
  ): Uint32Array {
    if (candidates.length > CANDIDATES_MAX) return compose(candidates, type, answers)
    const kind = kindOf(type)
    const isLast =
      kind === this.#lastKind &&
      answers === this.#lastAnswers &&
      areAlike(candidates, this.#lastCandidates)
    if (isLast && this.#lastWords !== undefined) return this.#lastWords
    const key = `${kind}${answers ?? ''} ${keyOf(candidates)}`
    const words = this.#words.get(key) ?? compose(candidates, type, answers)
    if (this.#words.size >= RECENT_MAX && !this.#words.has(key)) this.#words.clear()
    this.#words.set(key, words)
    this.#lastCandidates = candidates
    this.#lastKind = kind
    this.#lastAnswers = answers
    this.#lastWords = words
    return words
  }
}

/** Encodes a set. `answers`: as in `SetRules`. */
export type Compose = (
  candidates: readonly Candidate[],
  type: number,
  answers: number | undefined,
) => Uint32Array

function kindOf(type: number): string {
  if (isSingleton(type)) return '1'
  return isAddress(type) ? 'A' : ''
}

function keyOf(candidates: readonly Candidate[]): string {
  let key = ''
  for (const [i, candidate] of candidates.entries()) {
    const { code, isDefault, point, weight, ttlSeconds, rdataIndexes } = candidate
    // Candidates of one endpoint share the index array. Two equal arrays are different endpoints.
    const first = candidates.findIndex((other) => other.rdataIndexes === rdataIndexes)
    const indexes = first === i ? rdataIndexes.join() : `=${first}`
    key += `|${code?.text ?? ''}@${point?.text ?? ''} ${isDefault ? 1 : 0} ${weight ?? ''} ${ttlSeconds} ${indexes}`
  }
  return key
}

/** Returns true only if both have equal keys; may return false although the keys are equal. */
function areAlike(some: readonly Candidate[], others: readonly Candidate[]): boolean {
  if (some.length !== others.length) return false
  for (let i = 0; i < some.length; i++) {
    const a = some[i]!
    const b = others[i]!
    const isSame =
      a.code?.text === b.code?.text &&
      a.isDefault === b.isDefault &&
      a.point?.text === b.point?.text &&
      a.weight === b.weight &&
      a.ttlSeconds === b.ttlSeconds
    if (!isSame || !haveEqualKeys(some, others, i)) return false
  }
  return true
}

/** True if candidate `i` of both has the same indexes, and shares them with the same earlier candidates. */
function haveEqualKeys(
  some: readonly Candidate[],
  others: readonly Candidate[],
  i: number,
): boolean {
  const a = some[i]!.rdataIndexes
  const b = others[i]!.rdataIndexes
  if (a.length !== b.length) return false
  for (let j = 0; j < a.length; j++) if (a[j] !== b[j]) return false
  for (let j = 0; j < i; j++) {
    if ((some[j]!.rdataIndexes === a) !== (others[j]!.rdataIndexes === b)) return false
  }
  return true
}
