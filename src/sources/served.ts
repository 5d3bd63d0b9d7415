import type { PackedRecord } from '../dnsrecord/pack.ts'
import type { StoredRecord } from './source.ts'

/** A stored record as a class, so that a hundred thousand of them share one object shape. */
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

/** A record with addresses that probes found up. Few records need that field. */
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

/** Returns a record with the results of its probes. */
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
