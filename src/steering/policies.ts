import { type ClassTrie, emptyTrie } from '../geo/class-trie.ts'
import type { PointSet } from '../geo/classes/point-orders.ts'
import type { GeoCode } from '../geo/code.ts'
import type { Point } from '../geo/point.ts'
import { LadderRows } from './ladder-rows.ts'
import type { TierKey } from './tier-key.ts'

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
 * The policies of all steered sets. A policy is the list of keys of the tiers of a set; most sets
 * share a few policies. A policy is never removed, because zone versions that are still being read
 * may name it.
 */
export class Policies implements SteeringSnapshots {
  snapshot: SteeringSnapshot
  readonly #policies: (readonly TierKey[])[] = []
  readonly #numberByKey = new Map<string, number>()
  readonly #codes = new Map<string, GeoCode>()
  readonly #pointSets = new Map<string, PointSet>()

  constructor() {
    this.snapshot = EMPTY_STEERING_SNAPSHOT
  }

  /** Does nothing: this thread adds a policy to the snapshot before any RRset names it. */
  catchUp(): void {}

  /**
   * Returns the number of the policy with these keys, and adds a new policy to the snapshot at
   * once, with the current trie. A code or point that the trie lacks matches no client until the
   * trie is rebuilt. `keys`: sorted by text, without duplicates.
   */
  intern(keys: readonly TierKey[]): number {
    const text = keys.map((key) => key.text).join(' ')
    const known = this.#numberByKey.get(text)
    if (known !== undefined) return known
    const number = this.#policies.push(keys) - 1
    this.#numberByKey.set(text, number)
    for (const { code } of keys) if (code !== undefined) this.#codes.set(code.text, code)
    this.#addRow(number)
    return number
  }

  /**
   * Adds points that compete for clients. Add those of endpoints that are out of service too, so that
   * a change of health needs no new trie. `set`: sorted by text, without duplicates.
   */
  addPointSet(set: PointSet): void {
    this.#pointSets.set(set.map(({ text }) => text).join(' '), set)
  }

  /**
   * Loads the policies of another table under the same numbers. A policy without keys is one that
   * no RRset names.
   */
  restore(policies: readonly (readonly TierKey[])[]): void {
    for (const keys of policies) {
      if (keys.length > 0) this.intern(keys)
      else this.#addRow(this.#policies.push(keys) - 1)
      for (const set of pointSetsOf(keys)) this.addPointSet(set)
    }
  }

  /** The keys of each policy, by its number. */
  get list(): readonly (readonly TierKey[])[] {
    return this.#policies
  }

  get pointSets(): PointSet[] {
    return [...this.#pointSets.values()]
  }

  /** Every code of all policies, sorted by text. */
  get codes(): GeoCode[] {
    return [...this.#codes.values()].sort((a, b) => (a.text < b.text ? -1 : 1))
  }

  /** Number of codes and point sets in use. They are never removed, so an equal count means equal ones. */
  get distinctionCount(): number {
    return this.#codes.size + this.#pointSets.size
  }

  /** Replaces the trie, and computes all rows for it. */
  adopt(trie: ClassTrie): void {
    const tierOf = sharedRows(capacityFor(this.#policies.length) * trie.classCount)
    const rows = new LadderRows(trie)
    for (const [number, keys] of this.#policies.entries()) rows.fill(tierOf, number, keys)
    this.snapshot = { trie, tierOf, policyCount: this.#policies.length }
  }

  #addRow(number: number): void {
    const { trie, tierOf } = this.snapshot
    const length = capacityFor(number + 1) * trie.classCount
    const grown = length > tierOf.length ? sharedRows(length) : tierOf
    if (grown !== tierOf) grown.set(tierOf)
    new LadderRows(trie).fill(grown, number, this.#policies[number]!)
    this.snapshot = { trie, tierOf: grown, policyCount: number + 1 }
  }
}

function sharedRows(length: number): Uint16Array {
  return new Uint16Array(new SharedArrayBuffer(length * 2))
}

/** Returns the points of each code of a policy. */
export function pointSetsOf(keys: readonly TierKey[]): PointSet[] {
  const byCode = new Map<string, Point[]>()
  for (const { code, point } of keys) {
    if (point === undefined) continue
    const text = code?.text ?? ''
    byCode.set(text, [...(byCode.get(text) ?? []), point])
  }
  return [...byCode.values()]
}

/** Returns the number of rows to allocate: a power of two, so that adding policies one by one takes linear time. */
function capacityFor(count: number): number {
  let capacity = 4
  while (capacity < count) capacity *= 2
  return capacity
}
