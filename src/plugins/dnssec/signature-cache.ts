import { randomFillSync } from 'node:crypto'
import { SIPHASH_KEY_OCTETS, sipHash24 } from '../../dns/edns/siphash.ts'
import type { HashedName } from '../../dns/name/hashed-name.ts'

/** Entries that one hash may be in. */
const WAYS = 8
const WORD_OCTETS = 4
/** Room for the longest rdata, and zeros behind it. */
const INPUT_OCTETS = 65_552
/** Two words of a hash, type, TTL and generation, before the owner. */
const HEAD_WORDS = 5

/** The signatures of one RRset. */
export interface CachedSignatures {
  /** RRSIG rdata, one for each key. */
  readonly rrsigs: readonly Uint8Array[]
  /** The only record of a set that the link made itself; undefined = the set has other records. */
  readonly record: Uint8Array | undefined
  /** Seconds since the Unix epoch when a new signature is due. */
  readonly dueSeconds: number
}

/** Whether an insertion replaced an entry. */
export const Stored = { New: 0, Replaced: 1 } as const
export type Stored = (typeof Stored)[keyof typeof Stored]

/**
 * Signatures by a keyed hash of owner, type, TTL, keys and all rdata, whatever their order. The size is fixed:
 *
 *     set:  8 entries     a new one replaces an entry that was never found again, else the one found longest ago
 *
 * So random names, which are asked for once, replace only each other.
 */
export class SignatureCache {
  readonly #sets: number
  readonly #ways: number
  readonly #tags: Int32Array
  /** Lookups so far when an entry was last found; 0 = never. */
  readonly #foundAt: Float64Array
  readonly #entries: (CachedSignatures | undefined)[]
  readonly #key = randomFillSync(new Int32Array(SIPHASH_KEY_OCTETS / WORD_OCTETS))
  readonly #words = new Int32Array(INPUT_OCTETS / WORD_OCTETS)
  readonly #octets = new Uint8Array(this.#words.buffer)
  readonly #out = new Int32Array(2)
  #low = 0
  #high = 0
  #lookups = 0

  constructor(capacity: number) {
    this.#ways = Math.min(WAYS, capacity)
    this.#sets = Math.floor(capacity / this.#ways)
    const size = this.#sets * this.#ways
    this.#tags = new Int32Array(size * 2)
    this.#foundAt = new Float64Array(size)
    this.#entries = new Array(size).fill(undefined)
  }

  /** Starts the hash of a set. `variant`: what the records are if `add` is not called. @hot */
  begin(variant: number): void {
    this.#low = variant
    this.#high = 0
  }

  /** Adds rdata of the set. @hot */
  add(rdata: Uint8Array, at: number, octets: number): void {
    this.#hash(this.#copy(rdata, at, octets, 0))
    // A sum, because the order does not count. Rdata that occurs twice would vanish from an XOR.
    this.#low = (this.#low + this.#out[0]!) | 0
    this.#high = (this.#high + this.#out[1]!) | 0
  }

  /** Ends the hash, with the owner of the set. @hot */
  end(owner: HashedName, type: number, ttlSeconds: number, generation: number): void {
    const words = this.#words
    words[0] = this.#low
    words[1] = this.#high
    words[2] = type
    words[3] = ttlSeconds
    words[4] = generation
    this.#hash(this.#copy(owner.qname, 0, owner.qnameOctets, HEAD_WORDS * WORD_OCTETS))
    this.#low = this.#out[0]!
    this.#high = this.#out[1]!
  }

  /** Finds the set that was hashed last; undefined = it is not here, or its signatures are due. @hot */
  find(nowSeconds: number): CachedSignatures | undefined {
    const tags = this.#tags
    this.#lookups++
    const start = this.#start()
    for (let i = start; i < start + this.#ways; i++) {
      if (tags[i * 2] !== this.#low || tags[i * 2 + 1] !== this.#high) continue
      const entry = this.#entries[i]
      if (entry === undefined || entry.dueSeconds <= nowSeconds) return undefined
      this.#foundAt[i] = this.#lookups
      return entry
    }
    return undefined
  }

  /** Stores the signatures of the set that was hashed last. */
  store(signatures: CachedSignatures): Stored {
    const start = this.#start()
    let place = start
    for (let i = start; i < start + this.#ways; i++) {
      if (this.#tags[i * 2] === this.#low && this.#tags[i * 2 + 1] === this.#high) {
        place = i
        break
      }
      if (this.#rank(i) < this.#rank(place)) place = i
    }
    const stored = this.#entries[place] === undefined ? Stored.New : Stored.Replaced
    this.#tags[place * 2] = this.#low
    this.#tags[place * 2 + 1] = this.#high
    this.#foundAt[place] = 0
    this.#entries[place] = signatures
    return stored
  }

  #rank(place: number): number {
    return this.#entries[place] === undefined ? -1 : this.#foundAt[place]!
  }

  #start(): number {
    return ((this.#high >>> 0) % this.#sets) * this.#ways
  }

  /** Returns the octets up to the end of the copy, which has zeros behind it. */
  #copy(from: Uint8Array, at: number, octets: number, to: number): number {
    const target = this.#octets
    for (let i = 0; i < octets; i++) target[to + i] = from[at + i]!
    const end = to + octets
    for (let i = end; i < end + WORD_OCTETS * 2; i++) target[i] = 0
    return end
  }

  #hash(octets: number): void {
    sipHash24(this.#key, this.#words, octets, this.#out)
  }
}
