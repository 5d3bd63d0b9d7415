import { equalOctets } from '../../base/octets.ts'
import { mixHash } from '../../dns/name/hash.ts'
import type { HashedName } from '../../dns/name/hashed-name.ts'
import type { Arena } from './arena.ts'
import * as L from './layout.ts'
import { createTable, doubleTable, insertSlot, tableWords } from './table.ts'

export class ZoneTable {
  readonly #arena: Arena
  #table: number
  /** Apexes in the table, including apexes of removed zones. */
  count: number

  /** Uses an arena that already has a table with `count` apexes. */
  constructor(arena: Arena, count: number) {
    this.#arena = arena
    this.#table = arena.words[L.HEADER_ZONES]!
    this.count = count
  }

  /** Creates the zone table of a new arena. `slots`: a power of two, at least twice the expected number of zones. */
  static create(arena: Arena, slots: number): ZoneTable {
    Atomics.store(arena.words, L.HEADER_ZONES, createTable(arena, slots))
    return new ZoneTable(arena, 0)
  }

  /** Appends the block of a zone and inserts it into the table; returns its offset. */
  add(id: number, apex: HashedName, version: number): number {
    const arena = this.#arena
    const nameWords = Math.ceil(apex.qnameOctets / 4)
    this.#reserve(L.ZONE_APEX + nameWords)
    const slot = this.#findSlot(apex)
    const zone = arena.allocate(L.ZONE_APEX + nameWords)
    const { words, bytes } = arena
    words[zone + L.ZONE_ID] = id
    words[zone + L.ZONE_BORN] = version
    words[zone + L.ZONE_APEX_SIZE] = (apex.labelCount << 16) | apex.qnameOctets
    words[zone + L.ZONE_HASH] = apex.suffixHash[0]! >>> 0
    bytes.set(apex.qname.subarray(0, apex.qnameOctets), (zone + L.ZONE_APEX) * 4)
    if (words[L.HEADER_ZONE_LABELS]! < apex.labelCount) {
      Atomics.store(words, L.HEADER_ZONE_LABELS, apex.labelCount)
    }
    if (slot !== 0) {
      words[zone + L.ZONE_PREVIOUS] = words[slot + 1]!
      Atomics.store(words, slot + 1, zone)
    } else {
      insertSlot(words, this.#table, mixHash(apex.suffixHash[0]!), zone)
      this.count++
    }
    return zone
  }

  #reserve(blockWords: number): void {
    const arena = this.#arena
    const slots = arena.words[this.#table + L.TABLE_MASK]! + 1
    arena.reserve(tableWords(slots * 2) + blockWords)
    if ((this.count + 1) * 2 <= slots) return
    this.#table = doubleTable(arena, this.#table)
    Atomics.store(arena.words, L.HEADER_ZONES, this.#table)
  }

  /** Returns the offset of the slot with the zones of this apex, or 0. */
  #findSlot(apex: HashedName): number {
    const { words, bytes } = this.#arena
    const hash = mixHash(apex.suffixHash[0]!)
    const mask = words[this.#table + L.TABLE_MASK]!
    for (let i = hash & mask; ; i = (i + 1) & mask) {
      const slot = this.#table + L.TABLE_SLOTS + i * L.SLOT_WORDS
      const zone = words[slot + 1]!
      if (zone === 0) return 0
      if (words[slot] !== hash) continue
      const octets = words[zone + L.ZONE_APEX_SIZE]! & 0xffff
      if (octets !== apex.qnameOctets) continue
      const at = (zone + L.ZONE_APEX) * 4
      if (equalOctets(bytes, at, apex.qname, 0, octets)) return slot
    }
  }
}
