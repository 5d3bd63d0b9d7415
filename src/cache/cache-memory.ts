import { ENTRY_HEADER_OCTETS, EntryField, type EntryKey } from './entry.ts'

/** Slots that a hash may be in. */
const SLOTS_PER_BUCKET = 8
/** Words of a slot: see `Slot`. */
export const SLOT_WORDS = 4
/** The unit of places in the ring. */
export const UNIT_OCTETS = 8
/** Ring octets per entry: twice what an answer of a few records takes. */
const OCTETS_PER_ENTRY = 512
/** The longest entry. Longer replies are not cached: one of them would displace hundreds of others. */
export const ENTRY_OCTETS_MAX = 16 * 1024
const RING_OCTETS_MIN = 8 * ENTRY_OCTETS_MAX
/** Room for the header of an entry that would start at the end of the ring. */
const ROOM_OCTETS = 64

/** Words of a slot. Readers write the last two. */
export const Slot = {
  Hash: 0,
  /** Place of the entry in the ring; 0 = the slot is free. */
  Place: 1,
  /** Queries in a row that found it. */
  Hits: 2,
  /** When the last of them came, in seconds. */
  SeenSeconds: 3,
} as const

/** Word of the header: the place up to which the writer may have written. */
export const RESERVED = 0
/** Word of the header that readers write to, only to order their reads. */
export const FENCE = 8
const HEADER_WORDS = 16

/**
 * The memory of a cache, which one thread writes and any number of threads read without locks:
 *
 *     ┌────────┬──────────────────────────────┬─────────────────┬──────────────────────────┐
 *     │ header │ buckets of 8 slots, by hash  │ refresh, by slot│ ring of entries          │
 *     └────────┴──────────────────────────────┴─────────────────┴──────────────────────────┘
 *
 * A place is a count of units that grows for ever; its rest by the size of the ring is the place's
 * offset. The writer first announces how far it writes (RESERVED), then writes an entry, then its
 * slot. A reader copies an entry, then reads RESERVED: if less than a ring was announced since the
 * entry's place, the copy is whole.
 */
export class CacheMemory {
  readonly words: Int32Array
  readonly octets: Uint8Array
  readonly view: DataView
  readonly bucketMask: number
  readonly refreshStart: number
  /** Offset of the ring, and its number of units, a power of two. */
  readonly ringStart: number
  readonly ringUnits: number

  constructor(buffer: SharedArrayBuffer, entries: number) {
    const { buckets, ringStart, ringUnits } = layoutOf(entries)
    this.words = new Int32Array(buffer)
    this.octets = new Uint8Array(buffer)
    this.view = new DataView(buffer)
    this.bucketMask = buckets - 1
    this.refreshStart = HEADER_WORDS + buckets * SLOTS_PER_BUCKET * SLOT_WORDS
    this.ringStart = ringStart
    this.ringUnits = ringUnits
  }

  /** Returns the words of the first slot for a hash. */
  bucketAt(hash: number): number {
    return HEADER_WORDS + (hash & this.bucketMask) * SLOTS_PER_BUCKET * SLOT_WORDS
  }

  /** Returns the end of the bucket that starts at `bucket`. */
  bucketEnd(bucket: number): number {
    return bucket + SLOTS_PER_BUCKET * SLOT_WORDS
  }

  /** Returns the word that is 1 while the entry of a slot is being refreshed. */
  refreshWord(slot: number): number {
    return this.refreshStart + (slot - HEADER_WORDS) / SLOT_WORDS
  }

  hasKey(place: number, key: EntryKey): boolean {
    const at = this.offsetOf(place)
    if (this.view.getUint16(at + EntryField.KeyOctets, true) !== key.octets) return false
    const keyAt = at + ENTRY_HEADER_OCTETS
    for (let i = 0; i < key.octets; i++) if (this.octets[keyAt + i] !== key.bytes[i]) return false
    return true
  }

  /** Returns the octet of a place. */
  offsetOf(place: number): number {
    return this.ringStart + (place & (this.ringUnits - 1)) * UNIT_OCTETS
  }
}

/** Allocates the memory of a cache for about that number of entries. */
export function createCacheBuffer(entries: number): SharedArrayBuffer {
  const { ringStart, ringUnits } = layoutOf(entries)
  return new SharedArrayBuffer(ringStart + ringUnits * UNIT_OCTETS + ROOM_OCTETS)
}

function layoutOf(entries: number): { buckets: number; ringStart: number; ringUnits: number } {
  // Half of the slots stay free, so that few buckets are full.
  const buckets = powerOfTwo((entries * 2) / SLOTS_PER_BUCKET)
  const slots = buckets * SLOTS_PER_BUCKET
  const ringOctets = powerOfTwo(Math.max(entries * OCTETS_PER_ENTRY, RING_OCTETS_MIN))
  const words = HEADER_WORDS + slots * SLOT_WORDS + slots
  return { buckets, ringStart: words * 4, ringUnits: ringOctets / UNIT_OCTETS }
}

function powerOfTwo(least: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(1, least)))
}
