import { type ClassTrie, emptyTrie } from '../geo/class-trie.ts'
import type { GeoCode } from '../geo/code.ts'

/**
 * The data that the steerer reads per query: the class trie, and the table that maps each class to
 * a tier. The object is replaced as a whole, so that one query sees a trie together with the rows
 * made for it.
 *
 *     tierOf      class 0   class 1   …
 *     policy 0  ┌─────────┬─────────┬──
 *     policy 1  │  tier   │  tier   │       row length = trie.classCount
 */
export interface SteeringSnapshot {
  readonly trie: ClassTrie
  /** Row-major, with spare rows: rows behind the last policy are zero. On a SharedArrayBuffer. */
  readonly tierOf: Uint16Array
  /** Number of rows that are in use. */
  readonly policyCount: number
}

/** Gives a steerer the current steering snapshot; one object per thread. */
export interface SteeringSnapshots {
  readonly snapshot: SteeringSnapshot
  /** Replaces `snapshot` with a newer one. Called when an RRset names a policy that `snapshot` lacks. */
  catchUp(): void
}

/** A snapshot without policies: every client is in class 0. */
export const EMPTY_STEERING_SNAPSHOT: SteeringSnapshot = {
  trie: emptyTrie(),
  tierOf: new Uint16Array(0),
  policyCount: 0,
}

/**
 * The policies of all steered sets. A policy is the list of codes that the candidates of a set
 * name; most sets share a few policies. A policy is never removed, because zone versions that are
 * still being read may name it.
 */
export class Policies implements SteeringSnapshots {
  snapshot: SteeringSnapshot
  readonly #policies: (readonly GeoCode[])[] = []
  readonly #numberByKey = new Map<string, number>()
  readonly #codes = new Map<string, GeoCode>()

  constructor() {
    this.snapshot = EMPTY_STEERING_SNAPSHOT
  }

  /** Does nothing: this thread adds a policy to the snapshot before any RRset names it. */
  catchUp(): void {}

  /**
   * Returns the number of the policy with these codes, and adds a new policy to the snapshot at
   * once, with the current trie. A code that the trie lacks matches no client until the trie is
   * rebuilt. `codes`: sorted by text, without duplicates.
   */
  intern(codes: readonly GeoCode[]): number {
    const key = codes.map((code) => code.text).join()
    const known = this.#numberByKey.get(key)
    if (known !== undefined) return known
    const number = this.#policies.push(codes) - 1
    this.#numberByKey.set(key, number)
    for (const code of codes) this.#codes.set(code.text, code)
    this.#addRow(number)
    return number
  }

  /**
   * Loads the policies of another table under the same numbers. A policy without codes is one that
   * no RRset names.
   */
  restore(policies: readonly (readonly GeoCode[])[]): void {
    for (const codes of policies) {
      if (codes.length > 0) this.intern(codes)
      else this.#addRow(this.#policies.push(codes) - 1)
    }
  }

  /** The codes of each policy, by its number. */
  get list(): readonly (readonly GeoCode[])[] {
    return this.#policies
  }

  /** Every code of all policies, sorted by text. */
  get codes(): GeoCode[] {
    return [...this.#codes.values()].sort((a, b) => (a.text < b.text ? -1 : 1))
  }

  /** Number of codes in use. Codes are never removed, so an equal count means equal codes. */
  get codeCount(): number {
    return this.#codes.size
  }

  /** Replaces the trie, and computes all rows for it. */
  adopt(trie: ClassTrie): void {
    const tierOf = sharedRows(capacityFor(this.#policies.length) * trie.classCount)
    for (const [number, codes] of this.#policies.entries()) fillRow(tierOf, number, codes, trie)
    this.snapshot = { trie, tierOf, policyCount: this.#policies.length }
  }

  #addRow(number: number): void {
    const { trie, tierOf } = this.snapshot
    const length = capacityFor(number + 1) * trie.classCount
    const grown = length > tierOf.length ? sharedRows(length) : tierOf
    if (grown !== tierOf) grown.set(tierOf)
    fillRow(grown, number, this.#policies[number]!, trie)
    this.snapshot = { trie, tierOf: grown, policyCount: number + 1 }
  }
}

function sharedRows(length: number): Uint16Array {
  return new Uint16Array(new SharedArrayBuffer(length * 2))
}

/** Fills one row. The tier of a class is that of the first code in `codesOf` (ladder order) that the policy has. */
function fillRow(
  tierOf: Uint16Array,
  number: number,
  codes: readonly GeoCode[],
  trie: ClassTrie,
): void {
  const tierByCode = new Map(codes.map((code, tier) => [code.text, tier]))
  for (const [clientClass, matching] of trie.codesOf.entries()) {
    const code = matching.find((candidate) => tierByCode.has(candidate.text))
    const tier = code === undefined ? codes.length : tierByCode.get(code.text)!
    tierOf[number * trie.classCount + clientClass] = tier
  }
}

/** Returns the number of rows to allocate: a power of two, so that adding policies one by one takes linear time. */
function capacityFor(count: number): number {
  let capacity = 4
  while (capacity < count) capacity *= 2
  return capacity
}
