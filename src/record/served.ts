import type { PackedRecord } from './pack.ts'
import type { StoredRecord } from './source.ts'

/** A stored record as a class: a hundred thousand of them share one shape. */
export class Served implements StoredRecord {
  readonly key: string
  readonly packed: PackedRecord
  readonly down: readonly string[]

  constructor(key: string, packed: PackedRecord, down: readonly string[]) {
    this.key = key
    this.packed = packed
    this.down = down
  }
}
