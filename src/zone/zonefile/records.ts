import { copyOctets } from '../../base/octets.ts'
import { findNode, findSlot, hashOctets, isOwner } from './node-index.ts'
import type { ScannedRecord, ZoneSink } from './sink.ts'

/** Maximum of records of one owner: the image's limit for one RRset. So many can be sorted without a pause. */
export const OWNER_RECORDS_MAX = 65_535
/** Maximum of octets of one zone's names and rdata: two gigabytes. */
const OCTETS_MAX = 0x7fff_ffff

/**
 * All records of one zone between scan and image. To avoid an object per record, numbers are in
 * typed arrays, names and rdata in one octet array, and the records of an owner are linked.
 *
 *     slots[hash] ─▶ node: owner octets, first and last record
 *                          record: type, ttl, rdata octets, file, line, next record of the node ─▶ …
 *
 * Nodes and records are numbered from 0 in the order of the file; -1 = none.
 */
export class ZoneRecords implements ZoneSink {
  nodeCount = 0
  recordCount = 0
  /** True after a record did not fit: names and rdata are limited to two gigabytes. */
  full = false
  /** True after an owner exceeded OWNER_RECORDS_MAX records: the last one was not stored. */
  crowded = false
  /** Files that records come from, by index. */
  readonly files: string[] = []

  octets: Uint8Array
  /** Octets of names and rdata. */
  octetCount = 0

  ownerOffset: Uint32Array
  ownerOctets: Uint8Array
  firstRecord: Int32Array
  #lastRecord: Int32Array
  #ownerRecords: Uint32Array

  nextRecord: Int32Array
  type: Uint16Array
  ttlSeconds: Uint32Array
  rdataOffset: Uint32Array
  rdataOctets: Uint16Array
  line: Uint32Array
  file: Uint16Array

  /** See `NodeIndex`. */
  slots: Int32Array
  hash: Int32Array
  #node = -1

  /** `recordsExpected`: an estimate, to avoid growing the arrays. */
  constructor(recordsExpected = 64) {
    const records = Math.max(16, recordsExpected)
    this.octets = new Uint8Array(records * 32)
    this.ownerOffset = new Uint32Array(records)
    this.ownerOctets = new Uint8Array(records)
    this.firstRecord = new Int32Array(records)
    this.#lastRecord = new Int32Array(records)
    this.#ownerRecords = new Uint32Array(records)
    this.hash = new Int32Array(records)
    this.nextRecord = new Int32Array(records)
    this.type = new Uint16Array(records)
    this.ttlSeconds = new Uint32Array(records)
    this.rdataOffset = new Uint32Array(records)
    this.rdataOctets = new Uint16Array(records)
    this.line = new Uint32Array(records)
    this.file = new Uint16Array(records)
    this.slots = new Int32Array(powerOfTwoAbove(records * 2)).fill(-1)
  }

  add(record: ScannedRecord): boolean {
    this.full = !this.#reserve(record.ownerOctets + record.rdataOctets)
    if (this.full) return false
    const node = this.#nodeOf(record.owner, record.ownerOctets)
    this.crowded = this.#ownerRecords[node]! >= OWNER_RECORDS_MAX
    if (this.crowded) return false
    this.#ownerRecords[node]!++
    const index = this.recordCount++
    this.type[index] = record.type
    this.ttlSeconds[index] = record.ttlSeconds
    this.rdataOffset[index] = this.#append(record.rdata, record.rdataOffset, record.rdataOctets)
    this.rdataOctets[index] = record.rdataOctets
    this.line[index] = record.line
    this.file[index] = this.#fileIndex(record.file)
    this.nextRecord[index] = -1
    const last = this.#lastRecord[node]!
    if (last === -1) this.firstRecord[node] = index
    else this.nextRecord[last] = index
    this.#lastRecord[node] = index
    return true
  }

  /** Returns the node of an owner, or -1. `owner`: lower-case wire form in 0..octets-1. */
  find(owner: Uint8Array, octets: number): number {
    return findNode(this, owner, octets)
  }

  /** Returns the owner of a node as a view: do not keep it. */
  owner(node: number): Uint8Array {
    const offset = this.ownerOffset[node]!
    return this.octets.subarray(offset, offset + this.ownerOctets[node]!)
  }

  /** Returns the rdata of a record as a view: do not keep it. */
  rdata(record: number): Uint8Array {
    const offset = this.rdataOffset[record]!
    return this.octets.subarray(offset, offset + this.rdataOctets[record]!)
  }

  #nodeOf(owner: Uint8Array, octets: number): number {
    // Records of one owner are mostly adjacent in the file.
    if (this.#node !== -1 && isOwner(this, this.#node, owner, octets)) return this.#node
    const hash = hashOctets(owner, octets)
    const slot = findSlot(this, owner, octets, hash)
    this.#node = this.slots[slot]!
    if (this.#node === -1) this.#node = this.#addNode(owner, octets, hash, slot)
    return this.#node
  }

  #addNode(owner: Uint8Array, octets: number, hash: number, slot: number): number {
    const node = this.nodeCount++
    this.ownerOffset[node] = this.#append(owner, 0, octets)
    this.ownerOctets[node] = octets
    this.firstRecord[node] = -1
    this.#lastRecord[node] = -1
    this.hash[node] = hash
    this.slots[slot] = node
    if (this.nodeCount * 2 > this.slots.length) this.#growSlots()
    return node
  }

  #append(from: Uint8Array, start: number, octets: number): number {
    const offset = this.octetCount
    copyOctets(from, start, this.octets, offset, octets)
    this.octetCount = offset + octets
    return offset
  }

  #fileIndex(file: string): number {
    const last = this.files.length - 1
    if (last >= 0 && this.files[last] === file) return last
    const known = this.files.indexOf(file)
    return known !== -1 ? known : this.files.push(file) - 1
  }

  /** Makes space for one record of `octets` octets in total; returns false if it does not fit. */
  #reserve(octets: number): boolean {
    const wanted = this.octetCount + octets
    if (wanted > OCTETS_MAX) return false
    if (wanted > this.octets.length) {
      const size = Math.min(OCTETS_MAX, Math.max(this.octets.length * 2, wanted))
      this.octets = grow(this.octets, new Uint8Array(size))
    }
    if (this.recordCount === this.type.length) this.#growRecords(this.type.length * 2)
    if (this.nodeCount === this.ownerOffset.length) this.#growNodes(this.nodeCount * 2)
    return true
  }

  #growRecords(size: number): void {
    this.nextRecord = grow(this.nextRecord, new Int32Array(size))
    this.type = grow(this.type, new Uint16Array(size))
    this.ttlSeconds = grow(this.ttlSeconds, new Uint32Array(size))
    this.rdataOffset = grow(this.rdataOffset, new Uint32Array(size))
    this.rdataOctets = grow(this.rdataOctets, new Uint16Array(size))
    this.line = grow(this.line, new Uint32Array(size))
    this.file = grow(this.file, new Uint16Array(size))
  }

  #growNodes(size: number): void {
    this.ownerOffset = grow(this.ownerOffset, new Uint32Array(size))
    this.ownerOctets = grow(this.ownerOctets, new Uint8Array(size))
    this.firstRecord = grow(this.firstRecord, new Int32Array(size))
    this.#lastRecord = grow(this.#lastRecord, new Int32Array(size))
    this.#ownerRecords = grow(this.#ownerRecords, new Uint32Array(size))
    this.hash = grow(this.hash, new Int32Array(size))
  }

  #growSlots(): void {
    const slots = new Int32Array(this.slots.length * 2).fill(-1)
    const mask = slots.length - 1
    for (let node = 0; node < this.nodeCount; node++) {
      let slot = this.hash[node]! & mask
      while (slots[slot] !== -1) slot = (slot + 1) & mask
      slots[slot] = node
    }
    this.slots = slots
  }
}

function grow<T extends Uint8Array | Uint16Array | Uint32Array | Int32Array>(from: T, to: T): T {
  to.set(from)
  return to
}

function powerOfTwoAbove(count: number): number {
  let size = 64
  while (size < count) size *= 2
  return size
}
