import { RRType } from '../../dns/iana/types.ts'
import * as L from '../../zone/image/layout.ts'
import type { ZoneReader } from '../../zone/image/reader.ts'

/** Takes a record of a zone image; false = it takes no more now. `ownerOctets`: without the apex, 0 = the apex. */
export interface RecordSink {
  add(
    owner: Uint8Array,
    ownerOffset: number,
    ownerOctets: number,
    type: number,
    ttlSeconds: number,
    rdata: Uint8Array,
    rdataOffset: number,
    rdataOctets: number,
  ): boolean
}

/**
 * A place in the content of one version of a zone: all its records except the SOA, in no order. Reads the arena
 * itself and does not allocate, because a zone can have millions of records.
 */
export class VersionCursor {
  readonly #reader: ZoneReader
  #node: number
  /** Of the node: the next RRset. Of the RRset: the next record, and the octet offset of its length. */
  #set = 0
  #record = 0
  #at = 0

  /** `reader`: at the version. `zone`: the offset of the zone's block. */
  constructor(reader: ZoneReader, zone: number) {
    this.#reader = reader
    this.#node = reader.newestNode(zone)
  }

  /** Gives records to `sink` until it takes no more. Returns false after the last record. */
  write(sink: RecordSink): boolean {
    const reader = this.#reader
    while (this.#node !== 0) {
      const body = reader.visibleBody(this.#node)
      if (body !== 0 && !this.#writeBody(body, sink)) return true
      this.#node = reader.words[this.#node + L.NODE_NEXT]!
      this.#set = 0
    }
    return false
  }

  /** Returns false if the sink took not all. */
  #writeBody(body: number, sink: RecordSink): boolean {
    const { words } = this.#reader
    const sets = words[body + L.BODY_STATE]! >>> L.BODY_COUNT_SHIFT
    for (; this.#set < sets; this.#set++) {
      const rrset = words[body + L.BODY_RRSETS + this.#set]!
      if (words[rrset + L.RRSET_HEAD]! >>> 16 === RRType.SOA) continue
      if (!this.#writeSet(body, rrset, sink)) return false
      this.#record = 0
    }
    return true
  }

  #writeSet(body: number, rrset: number, sink: RecordSink): boolean {
    const { words, bytes } = this.#reader
    const head = words[rrset + L.RRSET_HEAD]!
    const type = head >>> 16
    // No other server accepts more than one CNAME (RFC 2181 section 10.1).
    const count = type === RRType.CNAME ? 1 : head & 0xffff
    const nameAt = (this.#node + L.NODE_NAME) * 4
    const nameOctets = words[this.#node + L.NODE_KEY]! & 0xffff
    let ttl = words[rrset + L.RRSET_TTL]!
    if (this.#record === 0) this.#at = this.#reader.rdataStart(rrset)
    for (; this.#record < count; this.#record++) {
      const at = this.#at
      const octets = (bytes[at]! << 8) | bytes[at + 1]!
      if (type === RRType.RRSIG) ttl = this.#coveredTtl(body, rrset, at)
      if (!sink.add(bytes, nameAt, nameOctets, type, ttl, bytes, at + 2, octets)) return false
      this.#at = at + 2 + octets
    }
    return true
  }

  /** Returns the TTL of the RRset that the signature at `at` covers (RFC 4034 section 3). */
  #coveredTtl(body: number, rrset: number, at: number): number {
    const { words, bytes } = this.#reader
    const covered = this.#reader.findRRset(body, (bytes[at + 2]! << 8) | bytes[at + 3]!)
    return words[(covered === 0 ? rrset : covered) + L.RRSET_TTL]!
  }
}
