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

/** One of the few with addresses that probes found up: the others do without the field. */
class ProvenServed extends Served {
  readonly up: readonly string[]

  constructor(
    key: string,
    packed: PackedRecord,
    found: { readonly down: readonly string[]; readonly up: readonly string[] },
  ) {
    super(key, packed, found.down)
    this.up = found.up
  }
}

/** A record with what probes found of its addresses. */
export function serve(
  key: string,
  packed: PackedRecord,
  down: readonly string[],
  up: readonly string[],
): Served {
  return up.length === 0
    ? new Served(key, packed, down)
    : new ProvenServed(key, packed, { down, up })
}
