import { copyOctets } from '../base/octets.ts'
import type { Query } from '../dns/message/query.ts'
import type { Transaction } from '../plugin/transaction.ts'
import { type CacheMemory, ENTRY_OCTETS_MAX } from './cache-memory.ts'
import { CacheReader, type EntryRoom } from './cache-reader.ts'
import type { CacheWriter } from './cache-writer.ts'
import {
  ENTRY_HEADER_OCTETS,
  EntryField,
  EntryFlag,
  EntryKey,
  Form,
  Variant,
  writeRecords,
} from './entry.ts'

/** Prefix lengths of both families: bits 0..32 of IPv4, then 0..128 of IPv6. */
const IPV6_LENGTHS_START = 40
const LENGTHS_OCTETS = 24
/** Stands for a response without signatures: longer than every validity period. */
const UNSIGNED_SECONDS = 0xffff_ffff

/**
 * Answers of one kind, by question, DO, CD and client subnet. An answer that is valid for one prefix (RFC 7871
 * section 7.3.1) has that prefix in its key; a second entry has the lengths of all prefixes
 * that the name has answers for.
 */
export class CacheStore {
  readonly #reader: CacheReader
  readonly #writer: CacheWriter | undefined
  readonly #sharedMs: (monotonicMs: number) => number
  readonly #key: EntryKey
  readonly #lengths = new Uint8Array(LENGTHS_OCTETS)
  readonly #room: EntryRoom = { chasedOctets: new Uint8Array(0) }
  readonly #entry = new Uint8Array(ENTRY_OCTETS_MAX)

  /** `writer`: of the control thread, which alone stores; undefined in other threads. */
  constructor(
    memory: CacheMemory,
    sharedMs: (monotonicMs: number) => number,
    writer: CacheWriter | undefined,
    variant: Variant = Variant.Only,
  ) {
    this.#reader = new CacheReader(memory)
    this.#writer = writer
    this.#sharedMs = sharedMs
    this.#key = new EntryKey(variant)
  }

  get canWrite(): boolean {
    return this.#writer !== undefined
  }

  /** Of the whole memory, and only in the thread that stores. */
  get entries(): number {
    return this.#writer?.entries ?? 0
  }

  /** Entries that made room for others; as `entries`. */
  get evictions(): number {
    return this.#writer?.evictions ?? 0
  }

  /** Of the entry found last, on the clock of all threads. */
  get storedMs(): number {
    return this.#reader.storedMs
  }

  /** Of the entry found last. */
  get lifetimeSeconds(): number {
    return this.#reader.lifetimeSeconds
  }

  /** For how long the signatures of the entry found last were valid when it was stored. */
  get signedSeconds(): number {
    return this.#reader.signedSeconds
  }

  /** How long the entry found last is still valid; 0 or less = it has expired. `nowMs`: shared. */
  leftSeconds(nowMs: number): number {
    return this.#reader.lifetimeSeconds - (nowMs - this.#reader.storedMs) / 1000
  }

  countHit(nowSeconds: number, gapSeconds: number): number {
    return this.#reader.countHit(nowSeconds, gapSeconds)
  }

  get isRefreshing(): boolean {
    return this.#reader.isRefreshing
  }

  startRefresh(): void {
    this.#reader.startRefresh()
  }

  /** Copies the entry that answers the query to `tx.chasedOctets`. Returns false if no entry does. @hot */
  find(tx: Transaction): boolean {
    return this.#find(tx.query, tx)
  }

  /** As `find`, without a copy that others see. */
  has(query: Query): boolean {
    return this.#find(query, this.#room)
  }

  #find(query: Query, room: EntryRoom): boolean {
    if (!hasPrefix(query)) return this.#findForm(query, room, Form.Plain, 0)
    return this.#findForm(query, room, Form.AnySubnet, 0) || this.#findScoped(query, room)
  }

  #findForm(query: Query, room: EntryRoom, form: Form, bits: number): boolean {
    this.#key.set(query, form, bits)
    return this.#reader.find(room, this.#key)
  }

  /** The answer of the longest prefix counts. */
  #findScoped(query: Query, room: EntryRoom): boolean {
    if (!this.#findLengths(query)) return false
    for (let bits = query.ecsSourceBits; bits > 0; bits--) {
      const bit = lengthBit(query, bits)
      const isUsed = (this.#lengths[bit >> 3]! & (1 << (bit & 7))) !== 0
      if (isUsed && this.#findForm(query, room, Form.Scoped, bits)) return true
    }
    return false
  }

  /** Fills `#lengths`. Returns false if the name has no answers for prefixes. */
  #findLengths(query: Query): boolean {
    if (!this.#findForm(query, this.#room, Form.Lengths, 0)) return false
    const at = ENTRY_HEADER_OCTETS + this.#key.octets
    copyOctets(this.#room.chasedOctets, at, this.#lengths, 0, LENGTHS_OCTETS)
    return true
  }

  /**
   * Stores the response as the answer to the query. Does nothing if it is too long. `signedSeconds`: for how long its
   * signatures are valid.
   */
  put(
    tx: Transaction,
    lifetimeSeconds: number,
    signedSeconds: number = UNSIGNED_SECONDS,
    storedMs: number = this.#sharedMs(tx.startedMs),
  ): void {
    const { query, response } = tx
    const entry = this.#entry
    const scope = Math.min(response.scopeBits, query.ecsSourceBits)
    const form = formOf(query, scope)
    if (hasPrefix(query)) this.remove(tx)
    if (form === Form.Scoped) this.#putLength(tx, scope)
    this.#key.set(query, form, scope)
    const end = writeRecords(entry, this.#startEntry(lifetimeSeconds, storedMs), query, response)
    if (end === 0) {
      this.remove(tx)
      return
    }
    const view = new DataView(entry.buffer)
    view.setUint8(EntryField.Rcode, response.rcode)
    view.setUint8(
      EntryField.Flags,
      (response.authenticData ? EntryFlag.Authentic : 0) |
        (response.recursionAvailable ? EntryFlag.RecursionAvailable : 0),
    )
    view.setUint16(EntryField.Records, response.count, true)
    view.setUint32(EntryField.SignedSeconds, Math.min(signedSeconds, UNSIGNED_SECONDS), true)
    view.setUint16(EntryField.ScopeBits, scope, true)
    this.#writer?.put(this.#key, entry, end)
  }

  remove({ query }: Transaction): void {
    this.#key.set(query, formOf(query, 0), 0)
    this.#writer?.remove(this.#key)
    if (!hasPrefix(query) || !this.#findLengths(query)) return
    for (let bits = query.ecsSourceBits; bits > 0; bits--) {
      const bit = lengthBit(query, bits)
      if ((this.#lengths[bit >> 3]! & (1 << (bit & 7))) === 0) continue
      this.#key.set(query, Form.Scoped, bits)
      this.#writer?.remove(this.#key)
    }
  }

  /** Allows the next refresh of what answers the query. */
  endRefresh(query: Query): void {
    if (this.has(query)) this.#writer?.endRefresh(this.#key)
  }

  /** Writes header and key of an entry, and returns where its records start. */
  #startEntry(lifetimeSeconds: number, storedMs: number): number {
    const view = new DataView(this.#entry.buffer)
    view.setFloat64(EntryField.StoredMs, storedMs, true)
    view.setUint32(EntryField.LifetimeSeconds, lifetimeSeconds, true)
    view.setUint16(EntryField.KeyOctets, this.#key.octets, true)
    view.setUint16(EntryField.Records, 0, true)
    this.#entry.set(this.#key.bytes.subarray(0, this.#key.octets), ENTRY_HEADER_OCTETS)
    return ENTRY_HEADER_OCTETS + this.#key.octets
  }

  /** Adds a prefix length to those of the name. */
  #putLength(tx: Transaction, bits: number): void {
    if (!this.#findLengths(tx.query)) this.#lengths.fill(0)
    const bit = lengthBit(tx.query, bits)
    this.#lengths[bit >> 3]! |= 1 << (bit & 7)
    const at = this.#startEntry(0, 0)
    this.#entry.set(this.#lengths, at)
    this.#writer?.put(this.#key, this.#entry, at + LENGTHS_OCTETS)
  }
}

function hasPrefix({ ecsFamily, ecsSourceBits }: Query): boolean {
  return ecsFamily !== 0 && ecsSourceBits !== 0
}

function formOf(query: Query, scope: number): Form {
  if (!hasPrefix(query)) return Form.Plain
  return scope === 0 ? Form.AnySubnet : Form.Scoped
}

function lengthBit({ ecsFamily }: Query, bits: number): number {
  return ecsFamily === 1 ? bits : IPV6_LENGTHS_START + bits
}
