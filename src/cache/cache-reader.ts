import {
  type CacheMemory,
  ENTRY_OCTETS_MAX,
  FENCE,
  RESERVED,
  SLOT_WORDS,
  Slot,
} from './cache-memory.ts'
import { EntryField, type EntryKey } from './entry.ts'

/** Room for a copy of an entry; a transaction has it. */
export interface EntryRoom {
  chasedOctets: Uint8Array
}

/** Reads a cache. Each thread has its own object; its fields describe the entry found last. */
export class CacheReader {
  readonly #memory: CacheMemory
  /** Words of the slot of the entry. */
  slot = 0
  storedMs = 0
  lifetimeSeconds = 0
  signedSeconds = 0

  constructor(memory: CacheMemory) {
    this.#memory = memory
  }

  /** Copies the entry with that key to `room`. Returns false if no entry has it. @hot */
  find(room: EntryRoom, key: EntryKey): boolean {
    const memory = this.#memory
    const { words } = memory
    const bucket = memory.bucketAt(key.hash)
    const end = memory.bucketEnd(bucket)
    for (let slot = bucket; slot < end; slot += SLOT_WORDS) {
      if (words[slot + Slot.Hash] !== key.hash) continue
      const place = words[slot + Slot.Place]!
      if (place === 0 || !this.#copy(room, key, place)) continue
      this.slot = slot
      return true
    }
    return false
  }

  #copy(room: EntryRoom, key: EntryKey, place: number): boolean {
    const memory = this.#memory
    const { octets, view, words } = memory
    const at = memory.offsetOf(place)
    const length = view.getUint32(at + EntryField.Octets, true)
    // While an entry is being overwritten, any field may have any value.
    if (length > ENTRY_OCTETS_MAX || at + length > octets.length) return false
    if (!memory.hasKey(place, key)) return false
    if (room.chasedOctets.length < length) room.chasedOctets = new Uint8Array(ENTRY_OCTETS_MAX)
    const copy = room.chasedOctets
    for (let i = 0; i < length; i += 4) {
      const word = words[(at + i) / 4]!
      copy[i] = word
      copy[i + 1] = word >> 8
      copy[i + 2] = word >> 16
      copy[i + 3] = word >> 24
    }
    this.storedMs = view.getFloat64(at + EntryField.StoredMs, true)
    this.lifetimeSeconds = view.getUint32(at + EntryField.LifetimeSeconds, true)
    this.signedSeconds = view.getUint32(at + EntryField.SignedSeconds, true)
    // The store orders the reads above before the one below.
    Atomics.store(words, FENCE, 0)
    return ((Atomics.load(words, RESERVED) - place) | 0) <= memory.ringUnits
  }

  /** Counts a query that found the entry; after a pause of `gapSeconds` the count starts again. */
  countHit(nowSeconds: number, gapSeconds: number): number {
    const { words } = this.#memory
    const { slot } = this
    const isRow = nowSeconds - words[slot + Slot.SeenSeconds]! < gapSeconds
    const hits = isRow ? words[slot + Slot.Hits]! + 1 : 1
    words[slot + Slot.Hits] = hits
    words[slot + Slot.SeenSeconds] = nowSeconds
    return hits
  }

  /** True while the control thread asks for the entry again. */
  get isRefreshing(): boolean {
    return Atomics.load(this.#memory.words, this.#memory.refreshWord(this.slot)) === 1
  }

  startRefresh(): void {
    Atomics.store(this.#memory.words, this.#memory.refreshWord(this.slot), 1)
  }
}
