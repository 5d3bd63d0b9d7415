import { randomFillSync } from 'node:crypto'
import { TABULATION_WORDS, TabulationHash } from '../../base/tabulation-hash.ts'
import type { Query } from '../../dns/message/query.ts'
import type { ProxyHeader } from './header.ts'

/** Words of a key: the port and family, and the address by four octets. */
const KEY_WORDS = 5
const ADDRESS_BITS = 128
/** Marks the end of a list. */
const NONE = -1
const NO_OCTETS = new Uint8Array(0)

/**
 * The clients of ports of a proxy that sends the PROXY header in the first datagram only. A session ends when its port
 * was silent for `trackingMs`. A new one replaces the one that was used the longest ago, if all places are in use:
 *
 *     buckets[hash] ─▶ place ─▶ place …        newest ◀─▶ place ◀─▶ … ◀─▶ oldest
 *
 * Finding a session allocates nothing. A new one allocates only if its TLVs are kept. The hash has a secret: senders
 * may choose many ports and addresses, which must not share a bucket.
 */
export class ProxySessions {
  readonly #trackingMs: number
  readonly #nowMs: () => number
  readonly #hash = new TabulationHash(randomFillSync(new Int32Array(TABULATION_WORDS)))
  readonly #mask: number
  readonly #buckets: Int32Array
  /** By place: the next one of its bucket, and the bucket. */
  readonly #chain: Int32Array
  readonly #bucketOf: Int32Array
  /** A ring of places. Index `#max` is between the newest, which is `#older` of it, and the oldest. */
  readonly #older: Int32Array
  readonly #newer: Int32Array
  readonly #keys: Int32Array
  readonly #usedMs: Float64Array
  readonly #clients: Uint8Array
  readonly #families: Uint8Array
  readonly #ports: Uint16Array
  readonly #tlvs: Uint8Array[] = []
  readonly #max: number
  #size = 0

  /** `nowMs`: monotonic. */
  constructor(trackingMs: number, max: number, nowMs: () => number = () => performance.now()) {
    this.#trackingMs = trackingMs
    this.#nowMs = nowMs
    this.#max = max
    let buckets = 16
    while (buckets < max) buckets *= 2
    this.#mask = buckets - 1
    this.#buckets = new Int32Array(buckets).fill(NONE)
    this.#chain = new Int32Array(max)
    this.#bucketOf = new Int32Array(max)
    this.#older = new Int32Array(max + 1).fill(max)
    this.#newer = new Int32Array(max + 1).fill(max)
    this.#keys = new Int32Array(max * KEY_WORDS)
    this.#usedMs = new Float64Array(max)
    this.#clients = new Uint8Array(max * 16)
    this.#families = new Uint8Array(max)
    this.#ports = new Uint16Array(max)
  }

  get size(): number {
    return this.#size
  }

  /**
   * The peer of `query`, which sent `header` in front of `octets`, is a port of this client from now on. `keepsTlvs`:
   * its queries have the TLVs of the header.
   */
  store(query: Query, header: ProxyHeader, octets: Uint8Array, keepsTlvs: boolean): void {
    let place = this.#find(query)
    if (place === NONE) place = this.#add(query)
    this.#use(place)
    this.#clients.set(header.address, place * 16)
    this.#families[place] = header.family
    this.#ports[place] = header.port
    const { tlvsAt, tlvsOctets } = header
    const hasTlvs = keepsTlvs && tlvsOctets > 0
    this.#tlvs[place] = hasTlvs ? octets.slice(tlvsAt, tlvsAt + tlvsOctets) : NO_OCTETS
  }

  /** Makes the client of the port that sent `query` its peer. Returns false if it has no session. @hot */
  describe(query: Query): boolean {
    const place = this.#find(query)
    if (place === NONE || this.#nowMs() - this.#usedMs[place]! > this.#trackingMs) return false
    this.#use(place)
    const { peerAddress } = query
    for (let i = 0; i < 16; i++) peerAddress[i] = this.#clients[place * 16 + i]!
    query.peerFamily = this.#families[place]!
    query.peerPort = this.#ports[place]!
    query.proxyTlvs = this.#tlvs[place]!
    query.proxyTlvsAt = 0
    query.proxyTlvsOctets = query.proxyTlvs.length
    return true
  }

  #find(query: Query): number {
    const keys = this.#keys
    const head = headOf(query)
    const { peerWords } = query
    let place = this.#buckets[this.#hashOf(query)]!
    while (place !== NONE) {
      const at = place * KEY_WORDS
      if (keys[at] === head && isSame(keys, at + 1, peerWords)) return place
      place = this.#chain[place]!
    }
    return NONE
  }

  #add(query: Query): number {
    const place = this.#size < this.#max ? this.#size++ : this.#removeOldest()
    const head = headOf(query)
    const at = place * KEY_WORDS
    this.#keys[at] = head
    this.#keys.set(query.peerWords, at + 1)
    const bucket = this.#hashOf(query)
    this.#bucketOf[place] = bucket
    this.#chain[place] = this.#buckets[bucket]!
    this.#buckets[bucket] = place
    this.#link(place)
    return place
  }

  #removeOldest(): number {
    const oldest = this.#newer[this.#max]!
    const bucket = this.#bucketOf[oldest]!
    const chain = this.#chain
    if (this.#buckets[bucket] === oldest) this.#buckets[bucket] = chain[oldest]!
    else {
      let before = this.#buckets[bucket]!
      while (chain[before] !== oldest) before = chain[before]!
      chain[before] = chain[oldest]!
    }
    this.#unlink(oldest)
    return oldest
  }

  /** Makes a place the newest. */
  #use(place: number): void {
    this.#usedMs[place] = this.#nowMs()
    if (this.#older[this.#max] === place) return
    this.#unlink(place)
    this.#link(place)
  }

  #unlink(place: number): void {
    const older = this.#older[place]!
    const newer = this.#newer[place]!
    this.#newer[older] = newer
    this.#older[newer] = older
  }

  #link(place: number): void {
    const ends = this.#max
    const second = this.#older[ends]!
    this.#older[place] = second
    this.#newer[place] = ends
    this.#newer[second] = place
    this.#older[ends] = place
  }

  /** The bucket of the peer. @hot */
  #hashOf(query: Query): number {
    return this.#hash.of(query.peerAddress, ADDRESS_BITS, headOf(query)) & this.#mask
  }
}

function headOf({ peerPort, peerFamily }: Query): number {
  return peerPort | (peerFamily << 16)
}

function isSame(keys: Int32Array, at: number, words: Int32Array): boolean {
  for (let i = 0; i < 4; i++) if (keys[at + i] !== words[i]) return false
  return true
}
