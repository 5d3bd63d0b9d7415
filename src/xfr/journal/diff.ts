import { RRType } from '../../dns/iana/types.ts'
import { RecordPacker } from './packed-records.ts'
import type { RecordView } from './record-view.ts'
import type { VersionView } from './version-view.ts'

/** Names between two pauses. */
const SLICE_NODES = 128

/** The change from one version of a zone to another (RFC 1995 section 4), as packed records. */
export interface ZoneDifference {
  readonly fromSerial: number
  readonly toSerial: number
  /** The old SOA, then the removed records. */
  readonly removed: Uint8Array
  /** The new SOA, then the added records. */
  readonly added: Uint8Array
}

interface Place {
  readonly owner: Uint8Array
  readonly type: number
}

/**
 * Compares two versions of a zone; pauses at intervals. `places`: where they can differ, undefined
 * = anywhere. Returns undefined if one has no SOA, or if the difference has more than `octetsMax`
 * octets.
 */
export function* diffVersions(
  from: VersionView,
  to: VersionView,
  places: readonly Place[] | undefined,
  octetsMax: number,
): Generator<void, ZoneDifference | undefined> {
  const removed = new RecordPacker(octetsMax)
  const added = new RecordPacker(octetsMax)
  const oldSoa = from.soa()
  const newSoa = to.soa()
  if (oldSoa === undefined || newSoa === undefined) return undefined
  removed.add(oldSoa)
  added.add(newSoa)
  const both = new SetComparison(from, to, removed, added)
  if (places !== undefined) yield* both.compareAt(places)
  else yield* both.compareAll()
  if (removed.isFull || added.isFull || removed.octets + added.octets > octetsMax) return undefined
  return {
    fromSerial: from.serial,
    toSerial: to.serial,
    removed: removed.packed(),
    added: added.packed(),
  }
}

class SetComparison {
  readonly #from: VersionView
  readonly #to: VersionView
  readonly #removed: RecordPacker
  readonly #added: RecordPacker

  constructor(from: VersionView, to: VersionView, removed: RecordPacker, added: RecordPacker) {
    this.#from = from
    this.#to = to
    this.#removed = removed
    this.#added = added
  }

  *compareAt(places: readonly Place[]): Generator<void, void> {
    let count = 0
    for (const { owner, type } of places) {
      if (type !== RRType.SOA) {
        this.#compare(owner, this.#from.find(owner, type), this.#to.find(owner, type))
      }
      if (++count % SLICE_NODES === 0) yield
    }
  }

  *compareAll(): Generator<void, void> {
    let count = 0
    for (const node of this.#to.nodes()) {
      const owner = this.#to.owner(node)
      for (const set of this.#to.sets(node)) {
        const type = this.#to.type(set)
        if (type !== RRType.SOA) this.#compare(owner, this.#from.find(owner, type), set)
      }
      if (++count % SLICE_NODES === 0) yield
    }
    for (const node of this.#from.nodes()) {
      const owner = this.#from.owner(node)
      for (const set of this.#from.sets(node)) {
        const type = this.#from.type(set)
        if (type === RRType.SOA || this.#to.find(owner, type) !== 0) continue
        this.#compare(owner, set, 0)
      }
      if (++count % SLICE_NODES === 0) yield
    }
  }

  /** Compares the RRsets of one owner and type; 0 = none. A record whose TTL changed is removed and added. */
  #compare(owner: Uint8Array, old: number, now: number): void {
    const before = old === 0 ? undefined : keysOf(this.#from.records(owner, old))
    const after = now === 0 ? undefined : keysOf(this.#to.records(owner, now))
    if (old !== 0) {
      for (const record of this.#from.records(owner, old)) {
        if (after?.has(keyOf(record)) !== true) this.#removed.add(record)
      }
    }
    if (now === 0) return
    for (const record of this.#to.records(owner, now)) {
      if (before?.has(keyOf(record)) !== true) this.#added.add(record)
    }
  }
}

function keysOf(records: Iterable<RecordView>): Set<string> {
  const keys = new Set<string>()
  for (const record of records) keys.add(keyOf(record))
  return keys
}

function keyOf({ ttlSeconds, rdata, rdataOffset, rdataOctets }: RecordView): string {
  // A copy: Buffer can't convert shared memory to text, because another thread may change it.
  const octets = Buffer.from(rdata.slice(rdataOffset, rdataOffset + rdataOctets))
  return `${ttlSeconds} ${octets.toString('latin1')}`
}
