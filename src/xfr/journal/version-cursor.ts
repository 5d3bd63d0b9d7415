import { RRType } from '../../dns/iana/types.ts'
import * as L from '../../zone/image/layout.ts'
import type { ZoneReader } from '../../zone/image/reader.ts'
import type { RecordView } from './record-view.ts'
import { signatureTtl, transferredRecords } from './transferred-records.ts'

interface RecordSink {
  /**
   * Takes a record, which is valid during the call; false = it takes no more now. Of the owner there are only the
   * `ownerOctets` octets above the apex, 0 = it is the apex.
   */
  add(record: RecordView, ownerOctets: number): boolean
}

const NO_OCTETS = new Uint8Array(0)

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
  readonly #view: RecordView = {
    ...{ owner: NO_OCTETS, ownerOffset: 0, type: 0, ttlSeconds: 0 },
    ...{ rdata: NO_OCTETS, rdataOffset: 0, rdataOctets: 0 },
  }

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
    const reader = this.#reader
    const { words, bytes } = reader
    const head = words[rrset + L.RRSET_HEAD]!
    const type = head >>> 16
    const chosen = transferredRecords(reader, body, rrset)
    const all = chosen?.rdataIndexes.length ?? head & 0xffff
    // No other server accepts more than one CNAME (RFC 2181 section 10.1).
    const count = type === RRType.CNAME ? Math.min(all, 1) : all
    const ownerOctets = words[this.#node + L.NODE_KEY]! & 0xffff
    const start = reader.rdataStart(rrset)
    const view = this.#view
    view.owner = bytes
    view.ownerOffset = (this.#node + L.NODE_NAME) * 4
    view.rdata = bytes
    view.type = type
    const ttlSeconds = chosen?.ttlSeconds ?? words[rrset + L.RRSET_TTL]!
    view.ttlSeconds = ttlSeconds
    if (this.#record === 0) this.#at = start
    for (; this.#record < count; this.#record++) {
      const index = chosen?.rdataIndexes[this.#record]
      const at = index === undefined ? this.#at : reader.rdataAt(rrset, start, index)
      view.rdataOffset = at + 2
      view.rdataOctets = (bytes[at]! << 8) | bytes[at + 1]!
      if (type === RRType.RRSIG) {
        const covered = (bytes[at + 2]! << 8) | bytes[at + 3]!
        view.ttlSeconds = signatureTtl(reader, body, covered) ?? ttlSeconds
      }
      if (!sink.add(view, ownerOctets)) return false
      this.#at = at + 2 + view.rdataOctets
    }
    return true
  }
}
