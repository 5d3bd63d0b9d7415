import type { RecordChange, StoredRecord } from '../records/record-source.ts'

/**
 * Maximum size of a set that is stored as a list. Nearly every host has one record, and a map takes
 * three times the memory.
 */
const FEW_MAX = 16

/** A set of records with unique keys. */
export class RecordSet implements Iterable<StoredRecord> {
  static readonly EMPTY: RecordSet = new RecordSet()

  #few: StoredRecord[] = []
  #many: Map<string, StoredRecord> | undefined = undefined

  static of(records: Iterable<StoredRecord>): RecordSet {
    const set = new RecordSet()
    for (const record of records) set.add(record)
    return set
  }

  get size(): number {
    return this.#many?.size ?? this.#few.length
  }

  [Symbol.iterator](): Iterator<StoredRecord> {
    return (this.#many ?? this.#few).values()
  }

  get(key: string): StoredRecord | undefined {
    return this.#many === undefined
      ? this.#few.find((record) => record.key === key)
      : this.#many.get(key)
  }

  /** Replaces the record with the same key. */
  add(record: StoredRecord): void {
    if (this.#many !== undefined) {
      this.#many.set(record.key, record)
      return
    }
    const at = this.#few.findIndex(({ key }) => key === record.key)
    if (at === -1) this.#few.push(record)
    else this.#few[at] = record
    if (this.#few.length <= FEW_MAX) return
    this.#many = new Map(this.#few.map((one) => [one.key, one]))
    this.#few = []
  }

  /** Removes `record` itself, and no other record of its key. */
  delete(record: StoredRecord): void {
    if (this.#many === undefined) this.#few = this.#few.filter((one) => one !== record)
    else if (this.#many.get(record.key) === record) this.#many.delete(record.key)
  }
}

/** Yields the changes from one record set to another: one change per key. */
export function* differences(from: RecordSet, to: RecordSet): Generator<RecordChange> {
  if (from === to) return
  for (const before of from) {
    const after = to.get(before.key)
    if (after !== before) yield { before, after }
  }
  for (const after of to) {
    if (from.get(after.key) === undefined) yield { before: undefined, after }
  }
}
