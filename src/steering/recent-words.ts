import type { Candidate } from './candidate.ts'
import { isSingleton } from './tiers.ts'

/** Sets of more candidates are rare, and seldom alike. */
const CANDIDATES_MAX = 16
const RECENT_MAX = 4096

/**
 * Words composed before, by all that they depend on. A cluster's records have the same few places and
 * weights over and over: finding their words costs a fraction of composing them.
 */
export class RecentWords {
  readonly #words = new Map<string, Uint32Array>()

  /** Undefined = `candidates` are too many to be worth it. `type` matters as far as names go with one record. */
  keyOf(candidates: readonly Candidate[], type: number): string | undefined {
    if (candidates.length > CANDIDATES_MAX) return undefined
    let key = isSingleton(type) ? '1' : ''
    for (const [i, candidate] of candidates.entries()) {
      const { code, isDefault, weight, ttlSeconds, rdataIndexes } = candidate
      // Candidates of one endpoint share the array of indexes: not the same as two with equal ones.
      const first = candidates.findIndex((other) => other.rdataIndexes === rdataIndexes)
      const indexes = first === i ? rdataIndexes.join() : `=${first}`
      key += `|${code?.text ?? ''} ${isDefault ? 1 : 0} ${weight ?? ''} ${ttlSeconds} ${indexes}`
    }
    return key
  }

  find(key: string): Uint32Array | undefined {
    return this.#words.get(key)
  }

  keep(key: string, words: Uint32Array): void {
    if (this.#words.size >= RECENT_MAX) this.#words.clear()
    this.#words.set(key, words)
  }
}
