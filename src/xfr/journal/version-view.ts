import { RRType } from '../../dns/iana/types.ts'
import { NameBuffer } from '../../zone/image/hashed-name.ts'
import * as L from '../../zone/image/layout.ts'
import { ZoneReader } from '../../zone/image/reader.ts'

/** One version of a zone: it stays readable as long as somebody has this, whatever is published after it. */
export interface ZoneVersion {
  /** Apex, lower-case wire form. */
  readonly zone: Uint8Array
  readonly serial: number
  readonly buffer: SharedArrayBuffer
  /** Of the image in `buffer`. */
  readonly imageVersion: number
}

/** One record, in place: valid until the next is asked for, what it points to for longer. */
export interface RecordView {
  /** Uncompressed wire form, from 0 on. */
  owner: Uint8Array
  ownerOffset: number
  type: number
  ttlSeconds: number
  rdata: Uint8Array
  rdataOffset: number
  rdataOctets: number
}

/** Owner, fixed fields and rdata of a record whose names are not compressed. */
export function recordOctets({ owner, ownerOffset, rdataOctets }: RecordView): number {
  let at = ownerOffset
  while (owner[at] !== 0) at += owner[at]! + 1
  return at + 1 - ownerOffset + 10 + rdataOctets
}

/**
 * Walks over the records of one version of a zone. Of a CNAME set with several members there is the first
 * alone: no other server takes more than one (RFC 2181 section 10.1).
 */
export class VersionView {
  readonly zone: Uint8Array
  readonly serial: number
  readonly #reader: ZoneReader
  readonly #zone: number
  readonly #zoneLabels: number
  readonly #name = new NameBuffer()

  /** Undefined if the image has no such zone. */
  static open(version: ZoneVersion): VersionView | undefined {
    const reader = new ZoneReader({ buffer: version.buffer })
    reader.refreshTo(version.imageVersion)
    const name = new NameBuffer()
    if (!name.set(version.zone, 0, version.zone.length)) return undefined
    const zone = reader.matchZone(name, 0)
    if (zone === 0 || reader.zoneLabel !== 0) return undefined
    return new VersionView(version, reader, zone, name.labelCount)
  }

  private constructor(
    { zone, serial }: ZoneVersion,
    reader: ZoneReader,
    offset: number,
    zoneLabels: number,
  ) {
    this.zone = zone
    this.serial = serial
    this.#reader = reader
    this.#zone = offset
    this.#zoneLabels = zoneLabels
  }

  /** Every name of the zone that has records, in no order, as a place for `sets` and `owner`. */
  *nodes(): Generator<number, void> {
    const reader = this.#reader
    let node = reader.newestNode(this.#zone)
    for (; node !== 0; node = reader.words[node + L.NODE_NEXT]!) {
      const body = reader.visibleBody(node)
      if (body !== 0 && reader.words[body + L.BODY_STATE]! >>> L.BODY_COUNT_SHIFT > 0) yield node
    }
  }

  /** The owner's name; a copy. */
  owner(node: number): Uint8Array {
    const { words, bytes } = this.#reader
    const octets = words[node + L.NODE_KEY]! & 0xffff
    const at = (node + L.NODE_NAME) * 4
    const owner = new Uint8Array(octets + this.zone.length)
    owner.set(bytes.subarray(at, at + octets))
    owner.set(this.zone, octets)
    return owner
  }

  /** The RRsets of a node. */
  sets(node: number): number[] {
    return this.#setsOf(this.#reader.visibleBody(node))
  }

  #setsOf(body: number): number[] {
    const { words } = this.#reader
    const count = words[body + L.BODY_STATE]! >>> L.BODY_COUNT_SHIFT
    return Array.from({ length: count }, (_, i) => words[body + L.BODY_RRSETS + i]!)
  }

  type(set: number): number {
    return this.#reader.words[set + L.RRSET_HEAD]! >>> 16
  }

  /** The RRset of that owner and type; 0 = there is none. */
  find(owner: Uint8Array, type: number): number {
    const body = this.#body(owner)
    return body === 0 ? 0 : this.#reader.findRRset(body, type)
  }

  /** The types that a name has. */
  typesAt(owner: Uint8Array): number[] {
    const body = this.#body(owner)
    return body === 0 ? [] : this.#setsOf(body).map((set) => this.type(set))
  }

  #body(owner: Uint8Array): number {
    const name = this.#name
    if (!name.set(owner, 0, owner.length)) return 0
    const zoneLabel = name.labelCount - this.#zoneLabels
    return zoneLabel < 0 ? 0 : this.#reader.findBody(this.#zone, name, 0, zoneLabel)
  }

  /** The records of an RRset; the same object again and again. Signatures have the TTLs of what they are over. */
  *records(owner: Uint8Array, set: number): Generator<RecordView, void> {
    const { words, bytes } = this.#reader
    const type = this.type(set)
    const all = words[set + L.RRSET_HEAD]! & 0xffff
    const count = type === RRType.CNAME ? Math.min(all, 1) : all
    const ttlSeconds = words[set + L.RRSET_TTL]!
    let at = this.#reader.rdataStart(set)
    const view = { owner, ownerOffset: 0, type, ttlSeconds, rdata: bytes, rdataOffset: 0 }
    const record: RecordView = { ...view, rdataOctets: 0 }
    for (let i = 0; i < count; i++) {
      record.rdataOctets = (bytes[at]! << 8) | bytes[at + 1]!
      record.rdataOffset = at + 2
      if (type === RRType.RRSIG) {
        const covered = this.find(owner, (bytes[at + 2]! << 8) | bytes[at + 3]!)
        record.ttlSeconds = covered === 0 ? ttlSeconds : words[covered + L.RRSET_TTL]!
      }
      yield record
      at += 2 + record.rdataOctets
    }
  }

  /** The SOA; undefined if the zone has none. */
  soa(): RecordView | undefined {
    const set = this.find(this.zone, RRType.SOA)
    if (set === 0) return undefined
    for (const record of this.records(this.zone, set)) return { ...record }
    return undefined
  }

  /** All records of all names but the SOA. */
  *content(): Generator<RecordView, void> {
    for (const node of this.nodes()) {
      const owner = this.owner(node)
      for (const set of this.sets(node)) {
        if (this.type(set) !== RRType.SOA) yield* this.records(owner, set)
      }
    }
  }
}
