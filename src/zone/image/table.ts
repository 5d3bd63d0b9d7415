import type { Arena } from './arena.ts'
import { SLOT_WORDS, TABLE_MASK, TABLE_SLOTS } from './layout.ts'

/** Returns the words of a table with `slots` slots. */
export function tableWords(slots: number): number {
  return TABLE_SLOTS + slots * SLOT_WORDS
}

/** Returns the slots of a table that has room for `entries`: a power of two, at most half of them used. */
export function slotsFor(entries: number): number {
  let slots = 64
  while (slots < (entries + 1) * 2) slots *= 2
  return slots
}

/** Appends an empty table and returns its offset. `slots`: a power of two. */
export function createTable(arena: Arena, slots: number): number {
  const table = arena.allocate(tableWords(slots))
  arena.words[table + TABLE_MASK] = slots - 1
  return table
}

/** Inserts `offset` under a finished hash. The caller keeps the table at most half full. */
export function insertSlot(words: Uint32Array, table: number, hash: number, offset: number): void {
  const mask = words[table + TABLE_MASK]!
  let slot = hash & mask
  while (words[table + TABLE_SLOTS + slot * SLOT_WORDS + 1] !== 0) slot = (slot + 1) & mask
  // The offset is written last: a reader that sees it sees the hash too.
  words[table + TABLE_SLOTS + slot * SLOT_WORDS] = hash
  Atomics.store(words, table + TABLE_SLOTS + slot * SLOT_WORDS + 1, offset)
}

/**
 * Appends a table of twice the size with the same entries, and returns its offset. The caller
 * publishes it; readers use the old table until they refresh.
 */
export function doubleTable(arena: Arena, table: number): number {
  const slots = arena.words[table + TABLE_MASK]! + 1
  const grown = createTable(arena, slots * 2)
  const words = arena.words
  for (let slot = 0; slot < slots; slot++) {
    const at = table + TABLE_SLOTS + slot * SLOT_WORDS
    const offset = words[at + 1]!
    if (offset !== 0) insertSlot(words, grown, words[at]!, offset)
  }
  return grown
}
