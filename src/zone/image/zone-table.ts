import { mixHash } from '../../dns/name/hash.ts'
import type { Arena } from './arena.ts'
import type { HashedName } from './hashed-name.ts'
import * as L from './layout.ts'
import { createTable, doubleTable, insertSlot, tableWords } from './table.ts'

/** The writer's side of the zone table of an arena. */
export class ZoneTable {
  readonly #arena: Arena
  #table: number
  /** Zones in the table, removed ones included. */
  count = 0

  /** `slots`: a power of two, at least twice the zones expected. */
  constructor(arena: Arena, slots: number) {
    this.#arena = arena
    this.#table = createTable(arena, slots)
    Atomics.store(arena.words, L.HEADER_ZONES, this.#table)
  }

  /** Appends the block of a zone and enters it; returns its offset. */
  add(id: number, apex: HashedName, version: number): number {
    const arena = this.#arena
    const slots = arena.words[this.#table + L.TABLE_MASK]! + 1
    const nameWords = Math.ceil(apex.qnameOctets / 4)
    arena.reserve(tableWords(slots * 2) + L.ZONE_APEX + nameWords)
    if ((this.count + 1) * 2 > slots) {
      this.#table = doubleTable(arena, this.#table)
      Atomics.store(arena.words, L.HEADER_ZONES, this.#table)
    }
    const zone = arena.allocate(L.ZONE_APEX + nameWords)
    const { words, bytes } = arena
    words[zone + L.ZONE_ID] = id
    words[zone + L.ZONE_BORN] = version
    words[zone + L.ZONE_APEX_SIZE] = (apex.labelCount << 16) | apex.qnameOctets
    words[zone + L.ZONE_HASH] = apex.suffixHash[0]! >>> 0
    bytes.set(apex.qname.subarray(0, apex.qnameOctets), (zone + L.ZONE_APEX) * 4)
    insertSlot(words, this.#table, mixHash(apex.suffixHash[0]!), zone)
    if (words[L.HEADER_ZONE_LABELS]! < apex.labelCount) {
      Atomics.store(words, L.HEADER_ZONE_LABELS, apex.labelCount)
    }
    this.count++
    return zone
  }
}
