import type { InputError } from '../base/errors.ts'
import { NONE, sameList } from '../dnsrecord/found-addresses.ts'
import type { PackedRecord } from '../dnsrecord/pack.ts'
import type { SlowStartUnits } from '../dnsrecord/slow-start-units.ts'
import type { RecordChange, RecordSource, StoredRecord } from './source.ts'

/** A stored record with the additions of an overlay. */
class Overlaid implements StoredRecord {
  readonly key: string
  readonly packed: PackedRecord
  readonly down: readonly string[]
  readonly up: readonly string[] | undefined
  readonly slowStart: readonly SlowStartUnits[] | undefined

  constructor({ key, packed }: StoredRecord, { down, up, slowStart }: Found) {
    this.key = key
    this.packed = packed
    this.down = down
    this.up = up
    this.slowStart = slowStart
  }
}

/** The health data of a record. */
type Found = Pick<StoredRecord, 'down' | 'up' | 'slowStart'>

/**
 * Returns the overlay's additions to a record. A field that is missing or undefined is not changed.
 */
export type Overlay = (record: StoredRecord) => Partial<Found> | undefined

/**
 * The records of another source, some of them with health data added. Listeners receive changes as
 * from any source: changes of the underlying source, and those that `refresh` finds.
 */
export class OverlaidSource implements RecordSource {
  readonly #below: RecordSource
  readonly #overlay: Overlay
  /** Records that differ from those of the underlying source, by key. */
  readonly #overlaid = new Map<string, StoredRecord>()
  readonly #listeners = new Set<(changes: readonly RecordChange[]) => void>()
  readonly #unsubscribe: () => void

  constructor(below: RecordSource, overlay: Overlay) {
    this.#below = below
    this.#overlay = overlay
    for (const record of below.records()) this.#lay(record)
    this.#unsubscribe = below.subscribe((changes) => this.#take(changes))
  }

  get recordCount(): number {
    return this.#below.recordCount
  }

  get isChanging(): boolean {
    return this.#below.isChanging === true
  }

  *records(): Iterable<StoredRecord> {
    for (const record of this.#below.records()) yield this.#overlaid.get(record.key) ?? record
  }

  find(key: string): StoredRecord | undefined {
    return this.#overlaid.get(key) ?? this.#below.find(key)
  }

  problems(): readonly InputError[] {
    return this.#below.problems()
  }

  unreadyReason(): string {
    return this.#below.unreadyReason()
  }

  subscribe(listener: (changes: readonly RecordChange[]) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Applies the overlay to these records again; publishes all that changed in one batch. */
  refresh(keys: Iterable<string>): void {
    const changes: RecordChange[] = []
    for (const key of keys) {
      const record = this.#below.find(key)
      if (record === undefined) continue
      const before = this.#overlaid.get(key) ?? record
      const after = this.#lay(record)
      if (after !== before) changes.push({ before, after })
    }
    this.#tell(changes)
  }

  close(): void {
    this.#unsubscribe()
    this.#listeners.clear()
  }

  #take(below: readonly RecordChange[]): void {
    const changes = below.map(({ before, after }): RecordChange => {
      const key = (before ?? after)!.key
      const seen = before === undefined ? undefined : (this.#overlaid.get(key) ?? before)
      this.#overlaid.delete(key)
      return { before: seen, after: after === undefined ? undefined : this.#lay(after) }
    })
    this.#tell(changes)
  }

  /** Returns the record with the overlay applied; the same object as before if nothing changed. */
  #lay(record: StoredRecord): StoredRecord {
    const { key } = record
    const added = this.#overlay(record)
    const before = this.#overlaid.get(key)
    const down = added?.down ?? record.down
    const up = added?.up ?? record.up
    const slowStart = added?.slowStart ?? record.slowStart
    const found = { down, up, slowStart: slowStart }
    if (isSameHealth(found, record)) {
      this.#overlaid.delete(key)
      return record
    }
    const isSame = before !== undefined && before.packed === record.packed
    if (isSame && isSameHealth(found, before)) return before
    const overlaid = new Overlaid(record, found)
    this.#overlaid.set(key, overlaid)
    return overlaid
  }

  #tell(changes: readonly RecordChange[]): void {
    if (changes.length === 0) return
    for (const listener of this.#listeners) listener(changes)
  }
}

function isSameHealth(a: Found, b: Found): boolean {
  return (
    sameList(a.down, b.down) &&
    sameList(a.up ?? NONE, b.up ?? NONE) &&
    sameSlowStart(a.slowStart, b.slowStart)
  )
}

function sameSlowStart(
  a: readonly SlowStartUnits[] = [],
  b: readonly SlowStartUnits[] = [],
): boolean {
  return (
    a.length === b.length &&
    a.every(({ address, units }, i) => address === b[i]!.address && units === b[i]!.units)
  )
}
