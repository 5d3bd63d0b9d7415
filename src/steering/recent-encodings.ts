import type { Candidate } from './candidate.ts'
import { isSingleton } from './tiers.ts'

/** Sets of more candidates are rare, and seldom alike. */
const CANDIDATES_MAX = 16
const RECENT_MAX = 4096

/**
 * Words composed before, by all that they depend on. A cluster's records have the same few places and
 * weights over and over: finding their words costs a fraction of composing them.
 */
export class RecentEncodings {
  readonly #words = new Map<string, Uint32Array>()
  /** What was asked for last, as often as not the next as well: comparing costs less than a key. */
  #lastCandidates: readonly Candidate[] = []
  #lastIsSingleton = false
  #lastWords: Uint32Array | undefined

  /**
   * The words that `compose` makes of these candidates, or made of others like them. `type` matters as
   * far as names go with one record.
   */
  find(candidates: readonly Candidate[], type: number, compose: Compose): Uint32Array {
    if (candidates.length > CANDIDATES_MAX) return compose(candidates, type)
    const isSingle = isSingleton(type)
    const isLast = isSingle === this.#lastIsSingleton && areAlike(candidates, this.#lastCandidates)
    if (isLast && this.#lastWords !== undefined) return this.#lastWords
    const key = keyOf(candidates, isSingle)
    const words = this.#words.get(key) ?? compose(candidates, type)
    if (this.#words.size >= RECENT_MAX && !this.#words.has(key)) this.#words.clear()
    this.#words.set(key, words)
    this.#lastCandidates = candidates
    this.#lastIsSingleton = isSingle
    this.#lastWords = words
    return words
  }
}

type Compose = (candidates: readonly Candidate[], type: number) => Uint32Array

function keyOf(candidates: readonly Candidate[], isSingle: boolean): string {
  let key = isSingle ? '1' : ''
  for (const [i, candidate] of candidates.entries()) {
    const { code, isDefault, weight, ttlSeconds, rdataIndexes } = candidate
    // Candidates of one endpoint share the array of indexes: not the same as two with equal ones.
    const first = candidates.findIndex((other) => other.rdataIndexes === rdataIndexes)
    const indexes = first === i ? rdataIndexes.join() : `=${first}`
    key += `|${code?.text ?? ''} ${isDefault ? 1 : 0} ${weight ?? ''} ${ttlSeconds} ${indexes}`
  }
  return key
}

/** True only if the keys of both are equal; false where they may be. */
function areAlike(some: readonly Candidate[], others: readonly Candidate[]): boolean {
  if (some.length !== others.length) return false
  for (let i = 0; i < some.length; i++) {
    const a = some[i]!
    const b = others[i]!
    const isSame =
      a.code?.text === b.code?.text &&
      a.isDefault === b.isDefault &&
      a.weight === b.weight &&
      a.ttlSeconds === b.ttlSeconds
    if (!isSame || !haveEqualKeys(some, others, i)) return false
  }
  return true
}

/** True if candidate `i` of both has the same indexes, shared with the same ones before it. */
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
