import { type CacheMemory, RESERVED, SLOT_WORDS, Slot, UNIT_OCTETS } from './cache-memory.ts'
import { EntryField, type EntryKey } from './entry.ts'

/** Marks the unused end of the ring. It is in the place of the length of an entry. */
const SKIP = 0x8000_0000

/** Writes a cache. Only one thread may have it. The oldest entries make room for new ones. */
export class CacheWriter {
  readonly #memory: CacheMemory
  readonly #entriesMax: number
  /** Place of the next entry, and of the oldest one. */
  #next: number
  #oldest: number
  entries = 0
  evictions = 0

  constructor(memory: CacheMemory, entriesMax: number) {
    this.#memory = memory
    this.#entriesMax = entriesMax
    // No entry has place 0.
    this.#next = this.#oldest = memory.ringUnits
    Atomics.store(memory.words, RESERVED, this.#next)
  }

  /** Stores the entry in `bytes[0..octets-1]`, which has that key, in place of an earlier one. */
  put(key: EntryKey, bytes: Uint8Array, octets: number): void {
    const memory = this.#memory
    const units = Math.ceil(octets / UNIT_OCTETS)
    this.#reserve(units)
    while (this.entries >= this.#entriesMax) this.#evictOldest()
    const place = this.#next
    const at = memory.offsetOf(place)
    memory.octets.set(bytes.subarray(0, octets), at)
    memory.view.setUint32(at + EntryField.Octets, units * UNIT_OCTETS, true)
    memory.view.setInt32(at + EntryField.Hash, key.hash, true)
    this.#next = (place + units) | 0
    this.#setSlot(key, place)
  }

  remove(key: EntryKey): void {
    const slot = this.#slotOf(key)
    if (slot !== -1) this.#clearSlot(slot)
  }

  /** Lets the next query refresh the entry of a key. */
  endRefresh(key: EntryKey): void {
    const slot = this.#slotOf(key)
    if (slot !== -1) Atomics.store(this.#memory.words, this.#memory.refreshWord(slot), 0)
  }

  /** Makes `units` at `#next` free, and continuous. */
  #reserve(units: number): void {
    const memory = this.#memory
    const toEnd = memory.ringUnits - (this.#next & (memory.ringUnits - 1))
    // A slot with place 0 is free, so no entry may have it once the count of units wraps.
    const skipped = units > toEnd ? toEnd : this.#next === 0 ? 1 : 0
    const end = (this.#next + skipped + units) | 0
    while (((end - this.#oldest) | 0) > memory.ringUnits) this.#dropOldest()
    Atomics.store(memory.words, RESERVED, end)
    // The load orders the store before the writes that follow.
    Atomics.load(memory.words, RESERVED)
    if (skipped === 0) return
    memory.view.setUint32(memory.offsetOf(this.#next) + EntryField.Octets, SKIP + skipped, true)
    this.#next = (this.#next + skipped) | 0
  }

  #evictOldest(): void {
    const { entries } = this
    while (this.entries === entries) this.#dropOldest()
  }

  /** Removes the oldest entry of the ring; it may have been replaced already. */
  #dropOldest(): void {
    const memory = this.#memory
    const at = memory.offsetOf(this.#oldest)
    const octets = memory.view.getUint32(at + EntryField.Octets, true)
    if (octets >= SKIP) {
      this.#oldest = (this.#oldest + octets - SKIP) | 0
      return
    }
    const bucket = memory.bucketAt(memory.view.getInt32(at + EntryField.Hash, true))
    for (let slot = bucket; slot < memory.bucketEnd(bucket); slot += SLOT_WORDS) {
      if (memory.words[slot + Slot.Place] !== this.#oldest) continue
      this.#clearSlot(slot)
      this.evictions++
    }
    this.#oldest = (this.#oldest + octets / UNIT_OCTETS) | 0
  }

  #setSlot(key: EntryKey, place: number): void {
    const { words } = this.#memory
    let slot = this.#slotOf(key)
    if (slot === -1) {
      slot = this.#freeSlot(key.hash)
      words[slot + Slot.Hits] = 0
      words[slot + Slot.SeenSeconds] = 0
      this.entries++
    }
    Atomics.store(words, slot + Slot.Hash, key.hash)
    Atomics.store(words, slot + Slot.Place, place)
    Atomics.store(words, this.#memory.refreshWord(slot), 0)
  }

  /** Returns a free slot of a bucket, or frees that of its oldest entry. */
  #freeSlot(hash: number): number {
    const memory = this.#memory
    const bucket = memory.bucketAt(hash)
    let oldest = bucket
    for (let slot = bucket; slot < memory.bucketEnd(bucket); slot += SLOT_WORDS) {
      const place = memory.words[slot + Slot.Place]!
      if (place === 0) return slot
      if (((place - memory.words[oldest + Slot.Place]!) | 0) < 0) oldest = slot
    }
    this.#clearSlot(oldest)
    this.evictions++
    return oldest
  }

  #clearSlot(slot: number): void {
    Atomics.store(this.#memory.words, slot + Slot.Place, 0)
    this.entries--
  }

  /** Returns the slot of the entry with exactly this key; -1 = no entry has it. */
  #slotOf(key: EntryKey): number {
    const memory = this.#memory
    const bucket = memory.bucketAt(key.hash)
    for (let slot = bucket; slot < memory.bucketEnd(bucket); slot += SLOT_WORDS) {
      const place = memory.words[slot + Slot.Place]!
      if (place !== 0 && memory.words[slot + Slot.Hash] === key.hash && memory.hasKey(place, key)) {
        return slot
      }
    }
    return -1
  }
}
