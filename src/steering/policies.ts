import { type ClassTrie, emptyTrie } from '../geo/class-trie.ts'
import type { GeoCode } from '../geo/code.ts'

/**
 * What the steerer reads per query: the class trie, and the table that says which tier each class
 * gets. Replaced as a whole, so that a query sees a trie and the rows made for it.
 *
 *     tierOf      class 0   class 1   …
 *     policy 0  ┌─────────┬─────────┬──
 *     policy 1  │  tier   │  tier   │       row length = trie.classCount
 */
export interface SteeringSnapshot {
  readonly trie: ClassTrie
  /** Row-major; sized ahead, rows beyond the last policy are zero. On a SharedArrayBuffer. */
  readonly tierOf: Uint16Array
  /** Rows that are filled in. */
  readonly policyCount: number
}

/** Where a steerer finds the world; one per thread. */
export interface SteeringSnapshots {
  readonly snapshot: SteeringSnapshot
  /** Called where an RRset names a policy that `world` does not have yet: gets one that has it. */
  catchUp(): void
}

/** Where everybody is at one place, and no RRset asks for it. */
export const EMPTY_STEERING_SNAPSHOT: SteeringSnapshot = {
  trie: emptyTrie(),
  tierOf: new Uint16Array(0),
  policyCount: 0,
}

/**
 * The different ladders of all steered sets: a policy is the list of codes that some candidate of a
 * set names, and most sets share a few. Policies stay as long as the table: words of zone versions
 * still being read may name them.
 */
export class Policies implements SteeringSnapshots {
  snapshot: SteeringSnapshot
  readonly #policies: (readonly GeoCode[])[] = []
  readonly #numberByKey = new Map<string, number>()
  readonly #codes = new Map<string, GeoCode>()

  constructor() {
    this.snapshot = EMPTY_STEERING_SNAPSHOT
  }

  /** Here policies are in the world before anything names them. */
  catchUp(): void {}

  /**
   * Number of the policy with these codes; made known to the world at once, on the trie that there
   * is. A code that the trie doesn't know yet matches nobody until it is rebuilt. `codes`: sorted by
   * text, each once.
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

  /** Takes over the policies of another table, by number; one without codes is one that nothing names. */
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

  /** Every code of every policy, sorted by text. */
  get codes(): GeoCode[] {
    return [...this.#codes.values()].sort((a, b) => (a.text < b.text ? -1 : 1))
  }

  /** How many codes are in use: they are never taken back, so an equal count means equal codes. */
  get codeCount(): number {
    return this.#codes.size
  }

  /** Puts a new trie to use. */
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

/** The tier of a class is that of its first code that the policy has: codesOf is the ladder. */
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

/** Rows to make room for: the next power of two, so that adding policies one by one stays linear. */
function capacityFor(count: number): number {
  let capacity = 4
  while (capacity < count) capacity *= 2
  return capacity
}
