import { RRType } from '../../dns/iana/types.ts'
import { NameBuffer } from '../../dns/name/hashed-name.ts'
import * as L from '../../zone/image/layout.ts'
import { ZoneReader } from '../../zone/image/reader.ts'
import type { RecordView } from './record-view.ts'
import { hasOneForm, signatureTtl, transferredRecords } from './transferred-records.ts'
import { VersionCursor } from './version-cursor.ts'

/**
 * One version of a zone. It is readable as long as this object exists, whatever is published later.
 */
export interface ZoneVersion {
  /** Apex, lower-case wire form. */
  readonly zone: Uint8Array
  readonly serial: number
  readonly buffer: SharedArrayBuffer
  /** Version of the image in `buffer`. */
  readonly imageVersion: number
}

/**
 * Reads the records of one version of a zone, as transfers have them: of a CNAME RRset with several members only the
 * first, since no other server accepts more than one (RFC 2181 section 10.1); see `transferredRecords`.
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

  /**
   * Yields every name of the zone that has records, in no order, as a node for `sets` and `owner`.
   */
  *nodes(): Generator<number, void> {
    const reader = this.#reader
    let node = reader.newestNode(this.#zone)
    for (; node !== 0; node = reader.words[node + L.NODE_NEXT]!) {
      const body = reader.visibleBody(node)
      if (body !== 0 && reader.words[body + L.BODY_STATE]! >>> L.BODY_COUNT_SHIFT > 0) yield node
    }
  }

  /** Returns a copy of the owner name. */
  owner(node: number): Uint8Array {
    const { words, bytes } = this.#reader
    const octets = words[node + L.NODE_KEY]! & 0xffff
    const at = (node + L.NODE_NAME) * 4
    const owner = new Uint8Array(octets + this.zone.length)
    owner.set(bytes.subarray(at, at + octets))
    owner.set(this.zone, octets)
    return owner
  }

  /** Returns the RRsets of a node. */
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

  /** Returns the RRset of that owner and type; 0 = none. */
  find(owner: Uint8Array, type: number): number {
    const body = this.#body(owner)
    return body === 0 ? 0 : this.#reader.findRRset(body, type)
  }

  /** Returns the RRsets of a name. */
  setsAt(owner: Uint8Array): number[] {
    const body = this.#body(owner)
    return body === 0 ? [] : this.#setsOf(body)
  }

  /** Returns the types of a name. */
  typesAt(owner: Uint8Array): number[] {
    return this.setsAt(owner).map((set) => this.type(set))
  }

  /** Whether an RRset equals one of another version octet for octet, including the order of its records. */
  equals(set: number, other: VersionView, otherSet: number): boolean {
    const { words } = this.#reader
    const others = other.#reader.words
    const size = words[set + L.RRSET_WORDS]!
    for (let i = 0; i < size; i++) if (words[set + i] !== others[otherSet + i]) return false
    return true
  }

  #body(owner: Uint8Array): number {
    const name = this.#name
    if (!name.set(owner, 0, owner.length)) return 0
    const zoneLabel = name.labelCount - this.#zoneLabels
    return zoneLabel < 0 ? 0 : this.#reader.findBody(this.#zone, name, 0, zoneLabel)
  }

  /**
   * Yields the records of an RRset that a transfer has; each step reuses the same object. Signatures have the TTLs of
   * the RRsets that they cover.
   */
  *records(owner: Uint8Array, set: number): Generator<RecordView, void> {
    const reader = this.#reader
    const { words, bytes } = reader
    const type = this.type(set)
    const body = hasOneForm(reader, set) ? 0 : this.#body(owner)
    const chosen = transferredRecords(reader, body, set)
    const all = chosen?.rdataIndexes.length ?? words[set + L.RRSET_HEAD]! & 0xffff
    const count = type === RRType.CNAME ? Math.min(all, 1) : all
    const ttlSeconds = chosen?.ttlSeconds ?? words[set + L.RRSET_TTL]!
    const start = reader.rdataStart(set)
    const view = { owner, ownerOffset: 0, type, ttlSeconds, rdata: bytes, rdataOffset: 0 }
    const record: RecordView = { ...view, rdataOctets: 0 }
    let at = start
    for (let i = 0; i < count; i++) {
      const index = chosen?.rdataIndexes[i]
      if (index !== undefined) at = reader.rdataAt(set, start, index)
      record.rdataOctets = (bytes[at]! << 8) | bytes[at + 1]!
      record.rdataOffset = at + 2
      if (type === RRType.RRSIG) {
        const covered = (bytes[at + 2]! << 8) | bytes[at + 3]!
        record.ttlSeconds = signatureTtl(reader, body, covered) ?? ttlSeconds
      }
      yield record
      at += 2 + record.rdataOctets
    }
  }

  /** Returns the SOA; undefined if the zone has none. */
  soa(): RecordView | undefined {
    const set = this.find(this.zone, RRType.SOA)
    if (set === 0) return undefined
    for (const record of this.records(this.zone, set)) return { ...record }
    return undefined
  }

  /** Returns a cursor before the first record. */
  cursor(): VersionCursor {
    return new VersionCursor(this.#reader, this.#zone)
  }

  /** Yields all records of all names except the SOA. */
  *content(): Generator<RecordView, void> {
    for (const node of this.nodes()) {
      const owner = this.owner(node)
      for (const set of this.sets(node)) {
        if (this.type(set) !== RRType.SOA) yield* this.records(owner, set)
      }
    }
  }
}
