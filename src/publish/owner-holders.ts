import { packedCreatedSeconds } from '../dnsrecord/pack.ts'
import type { StoredRecord } from '../dnsrecord/record-source.ts'

/** Maximum number of records per owner whose endpoints are read. */
export const HOLDERS_MAX = 1024

/**
 * The records with endpoints at one owner: nearly always one, else a list in order
 * (`compareHolders`).
 */
type Holders = StoredRecord | StoredRecord[]

/** The records with endpoints at each owner. */
export class OwnerHolders {
  /** Records by `nameKey` of the owner. */
  readonly #byOwner = new Map<string, Holders>()

  has(key: string): boolean {
    return this.#byOwner.has(key)
  }

  /** Returns a list that is valid until the next change. */
  of(key: string): readonly StoredRecord[] {
    const held = this.#byOwner.get(key)
    if (held === undefined) return []
    return Array.isArray(held) ? held : [held]
  }

  add(key: string, record: StoredRecord): void {
    const held = this.#byOwner.get(key)
    if (held === undefined) {
      this.#byOwner.set(key, record)
      return
    }
    const list = Array.isArray(held) ? held : [held]
    list.splice(placeOf(record, list), 0, record)
    this.#byOwner.set(key, list)
  }

  drop(key: string, record: StoredRecord): void {
    const held = this.#byOwner.get(key)
    if (!Array.isArray(held)) {
      if (held === record) this.#byOwner.delete(key)
      return
    }
    const at = held.indexOf(record)
    if (at !== -1) held.splice(at, 1)
    if (held.length === 1) this.#byOwner.set(key, held[0]!)
  }

  /** Replaces `before` by `after`, which has the same key and age. */
  replace(key: string, before: StoredRecord, after: StoredRecord): void {
    const held = this.#byOwner.get(key)
    if (!Array.isArray(held)) {
      this.#byOwner.set(key, after)
      return
    }
    const at = held.indexOf(before)
    if (at !== -1) held[at] = after
  }
}

/**
 * Orders records by age, oldest first, then by key: the order in which `buildOwnerSets` ranks their
 * endpoints.
 */
function compareHolders(a: StoredRecord, b: StoredRecord): number {
  const ageA = packedCreatedSeconds(a.packed) || Number.POSITIVE_INFINITY
  const ageB = packedCreatedSeconds(b.packed) || Number.POSITIVE_INFINITY
  if (ageA !== ageB) return ageA < ageB ? -1 : 1
  if (a.key === b.key) return 0
  return a.key < b.key ? -1 : 1
}

/** Index of the first record that sorts after `record`. */
function placeOf(record: StoredRecord, list: readonly StoredRecord[]): number {
  let low = 0
  let high = list.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (compareHolders(list[middle]!, record) > 0) high = middle
    else low = middle + 1
  }
  return low
}
