import { copyOctets } from '../../base/octets.ts'
import type { Arena } from './arena.ts'
import * as L from './layout.ts'

/**
 * All records of one name, for `ZoneImage.putName`. Numbers are in arrays, so that a zone of millions of names needs no
 * object for each. Reused.
 */
export class RecordRun {
  count = 0
  /** By record; ascending when the run is written. */
  readonly type: number[] = []
  readonly ttlSeconds: number[] = []
  readonly rdataOffset: number[] = []
  readonly rdataOctets: number[] = []
  /** Has the rdata of all records. */
  octets: Uint8Array = new Uint8Array(0)

  add(type: number, ttlSeconds: number, rdataOffset: number, rdataOctets: number): void {
    const index = this.count++
    this.type[index] = type
    this.ttlSeconds[index] = ttlSeconds
    this.rdataOffset[index] = rdataOffset
    this.rdataOctets[index] = rdataOctets
  }

  /** Returns the end of the RRset that starts at `from`. */
  setEnd(from: number): number {
    const { type, count } = this
    let end = from + 1
    while (end < count && type[end] === type[from]) end++
    return end
  }

  /** Returns the words that its RRsets need at most. */
  wordsMax(): number {
    let words = 0
    for (let i = 0; i < this.count; i++)
      words += L.RRSET_REST + 2 + ((this.rdataOctets[i]! + 2) >> 2)
    return words
  }

  /** Appends the RRsets of a run to an arena with room for them. Sets `sets` to their offsets; returns their words. */
  write(arena: Arena, sets: number[]): number {
    const start = arena.tail
    sets.length = 0
    for (let from = 0; from < this.count; ) {
      const end = this.setEnd(from)
      sets.push(this.#writeSet(arena, from, end))
      from = end
    }
    return arena.tail - start
  }

  #writeSet(arena: Arena, from: number, end: number): number {
    const { rdataOctets, rdataOffset, octets } = this
    const count = end - from
    const table = count > L.TABLE_FREE_RDATA_MAX ? count : 0
    let total = 0
    for (let i = from; i < end; i++) total += 2 + rdataOctets[i]!
    const size = L.RRSET_REST + table + ((total + 3) >> 2)
    const rrset = arena.allocate(size)
    const { words, bytes } = arena
    words[rrset + L.RRSET_HEAD] = ((this.type[from]! << 16) | count) >>> 0
    words[rrset + L.RRSET_TTL] = this.ttlSeconds[from]!
    words[rrset + L.RRSET_WORDS] = size
    const start = (rrset + L.RRSET_REST + table) * 4
    let at = start
    for (let i = from; i < end; i++) {
      if (table > 0) words[rrset + L.RRSET_REST + i - from] = at - start
      const length = rdataOctets[i]!
      bytes[at] = length >> 8
      bytes[at + 1] = length
      copyOctets(octets, rdataOffset[i]!, bytes, at + 2, length)
      at += 2 + length
    }
    return rrset
  }
}
