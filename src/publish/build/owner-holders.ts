import { firstOwnerKey, packedCreatedSeconds } from '../../records/pack.ts'
import { compareRecords, type RecordRank, sortRecords } from '../../records/record-order.ts'
import type { StoredRecord } from '../../records/record-source.ts'

/** Maximum number of records per owner whose endpoints are read. */
export const HOLDERS_MAX = 1024

/** The records with endpoints at one owner: nearly always one, else a list in order. */
type Holders = StoredRecord | StoredRecord[]

/** The records with endpoints at each owner, in order (`sortRecords`). */
export class OwnerHolders {
  /** The site of records without `origin`; '' = it has no name. */
  readonly #site: string
  /** Records by `nameKey` of the owner. */
  readonly #byOwner = new Map<string, Holders>()
  /** Number of undated records by owner; missing = 0. They are rare, and one decides how the whole list is ordered. */
  readonly #undated = new Map<string, number>()

  constructor(site: string) {
    this.#site = site
  }

  /** `nameKey` of each owner. The list may change while it is read. */
  keys(): Iterable<string> {
    return this.#byOwner.keys()
  }

  has(key: string): boolean {
    return this.#byOwner.has(key)
  }

  /** Returns a list that is valid until the next change. */
  of(key: string): readonly StoredRecord[] {
    const held = this.#byOwner.get(key)
    if (held === undefined) return []
    return Array.isArray(held) ? held : [held]
  }

  /** Returns all records, for a zone that serves them as they are. */
  *records(): Generator<StoredRecord> {
    for (const [key, held] of this.#byOwner) {
      for (const record of Array.isArray(held) ? held : [held]) {
        if (firstOwnerKey(record.packed) === key) yield record
      }
    }
  }

  add(key: string, record: StoredRecord): void {
    this.#put(key, record)
    if (record.origin?.isUndated === true) this.#countUndated(key, 1)
  }

  drop(key: string, record: StoredRecord): void {
    if (this.#take(key, record) && record.origin?.isUndated === true) this.#countUndated(key, -1)
  }

  #put(key: string, record: StoredRecord): void {
    const held = this.#byOwner.get(key)
    if (held === undefined) {
      this.#byOwner.set(key, record)
      return
    }
    const list = Array.isArray(held) ? held : [held]
    list.splice(this.#placeOf(record, list, !this.#undated.has(key)), 0, record)
    this.#byOwner.set(key, list)
  }

  /** Returns false if the record was not there. */
  #take(key: string, record: StoredRecord): boolean {
    const held = this.#byOwner.get(key)
    if (!Array.isArray(held)) return held === record && this.#byOwner.delete(key)
    const at = held.indexOf(record)
    if (at === -1) return false
    held.splice(at, 1)
    if (held.length === 1) this.#byOwner.set(key, held[0]!)
    return true
  }

  #countUndated(key: string, change: 1 | -1): void {
    const before = this.#undated.get(key) ?? 0
    if (before + change === 0) this.#undated.delete(key)
    else this.#undated.set(key, before + change)
    const held = this.#byOwner.get(key)
    if (before > 0 === before + change > 0 || !Array.isArray(held)) return
    const ranked = held.map((record) => ({ record, ...rankOf(record, this.#site) }))
    this.#byOwner.set(
      key,
      sortRecords(ranked).map(({ record }) => record),
    )
  }

  /** Replaces `before` by `after`, which has the same key, age and origin. */
  replace(key: string, before: StoredRecord, after: StoredRecord): void {
    const held = this.#byOwner.get(key)
    if (!Array.isArray(held)) {
      this.#byOwner.set(key, after)
      return
    }
    const at = held.indexOf(before)
    if (at !== -1) held[at] = after
  }

  /** Index of the first record that sorts after `record`. */
  #placeOf(record: StoredRecord, list: readonly StoredRecord[], isDated: boolean): number {
    const rank = rankOf(record, this.#site)
    let low = 0
    let high = list.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (compareRecords(rankOf(list[middle]!, this.#site), rank, isDated) > 0) high = middle
      else low = middle + 1
    }
    return low
  }
}

/** `site`: of records without `origin`. */
function rankOf({ key, packed, origin }: StoredRecord, site: string): RecordRank {
  const createdSeconds = packedCreatedSeconds(packed)
  const { id, isUndated } = origin ?? {}
  return { key, createdSeconds, site: origin?.site ?? site, id, isUndated }
}
