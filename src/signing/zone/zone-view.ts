import { NameBuffer } from '../../dns/name/hashed-name.ts'
import * as L from '../../zone/image/layout.ts'
import { type ArenaHandle, ZoneReader } from '../../zone/image/reader.ts'
import { nodeKey, OwnerChain } from './owner-chain.ts'

const HIDING_FLAGS = L.FLAG_CUT | L.FLAG_DNAME

/** An RRset of a name in a zone image. */
export class ImageSet {
  readonly #reader: ZoneReader
  /** Its offset in the arena. */
  readonly place: number

  constructor(reader: ZoneReader, place: number) {
    this.#reader = reader
    this.place = place
  }

  get type(): number {
    return this.#reader.words[this.place + L.RRSET_HEAD]! >>> 16
  }

  get ttlSeconds(): number {
    return this.#reader.words[this.place + L.RRSET_TTL]!
  }

  /** Views of the arena, in the order of the set. */
  get rdata(): Uint8Array[] {
    const { bytes } = this.#reader
    let at = this.#reader.rdataStart(this.place)
    return Array.from({ length: this.#reader.rdataCount(this.place) }, () => {
      const start = at + 2
      at = start + ((bytes[at]! << 8) | bytes[at + 1]!)
      return bytes.subarray(start, at)
    })
  }

  /** The encoded steering, or the signature directory; undefined = it has none. */
  get steering(): Uint32Array | undefined {
    const { words } = this.#reader
    const count = words[this.place + L.RRSET_STEERING_COUNT]!
    if (count === 0) return undefined
    const start = this.#reader.steeringStart(this.place)
    return words.subarray(start, start + count)
  }
}

/**
 * A zone in one version of an image, which may be the unpublished one: for the thread of the writer. It sees no change
 * that follows its creation.
 */
export class ZoneView {
  readonly apex: Uint8Array
  readonly buffer: SharedArrayBuffer
  readonly #reader: ZoneReader
  readonly #zone: number
  readonly #zoneLabels: number
  readonly #name = new NameBuffer()

  private constructor(reader: ZoneReader, zone: number, apex: Uint8Array) {
    this.#reader = reader
    this.#zone = zone
    this.apex = apex
    this.buffer = reader.handle.buffer
    this.#zoneLabels = reader.words[zone + L.ZONE_APEX_SIZE]! >>> 16
  }

  /** Undefined = the version does not have the zone. */
  static open(handle: ArenaHandle, apex: Uint8Array, version: number): ZoneView | undefined {
    const reader = new ZoneReader({ buffer: handle.buffer })
    reader.refreshTo(version)
    const name = new NameBuffer()
    name.set(apex, 0, apex.length)
    const zone = reader.matchZone(name, 0)
    if (zone === 0 || reader.zoneLabel !== 0) return undefined
    return new ZoneView(reader, zone, apex)
  }

  /** Returns the place of a name's body (see `ZoneReader`); 0 = the name does not exist. */
  find(owner: Uint8Array): number {
    const name = this.#name
    name.set(owner, 0, owner.length)
    return this.#reader.findBody(this.#zone, name, 0, name.labelCount - this.#zoneLabels)
  }

  /** Returns the flags of a name. */
  flags(body: number): number {
    return body === 0 ? 0 : this.#reader.words[body + L.BODY_STATE]! & 0xff
  }

  sets(body: number): ImageSet[] {
    if (body === 0) return []
    const { words } = this.#reader
    const count = words[body + L.BODY_STATE]! >>> L.BODY_COUNT_SHIFT
    const start = body + L.BODY_RRSETS
    return Array.from(words.subarray(start, start + count), (at) => new ImageSet(this.#reader, at))
  }

  set(body: number, type: number): ImageSet | undefined {
    const rrset = body === 0 ? 0 : this.#reader.findRRset(body, type)
    return rrset === 0 ? undefined : new ImageSet(this.#reader, rrset)
  }

  /** Returns how many records of a type a name has. */
  recordCount(body: number, type: number): number {
    const rrset = body === 0 ? 0 : this.#reader.findRRset(body, type)
    return rrset === 0 ? 0 : this.#reader.rdataCount(rrset)
  }

  /** True if the name is below a zone cut or a DNAME, so that its data is not authoritative. */
  isHidden(owner: Uint8Array): boolean {
    const reader = this.#reader
    if (reader.words[this.#zone + L.ZONE_DELEGATES] === 0) return false
    const name = this.#name
    name.set(owner, 0, owner.length)
    const zoneLabel = name.labelCount - this.#zoneLabels
    for (let label = 1; label <= zoneLabel; label++) {
      const body = reader.findBody(this.#zone, name, label, zoneLabel)
      if ((this.flags(body) & HIDING_FLAGS) !== 0) return true
    }
    return false
  }

  get newestNode(): number {
    return this.#reader.newestNode(this.#zone)
  }

  /** Yields the place of every node of the zone, also of names that do not exist, from the newest. */
  *nodes(from: number = this.newestNode): Generator<number, void> {
    let node = from
    for (; node !== 0; node = this.#reader.words[node + L.NODE_NEXT]!) yield node
  }

  /** Returns the body of a node; 0 = the name does not exist. */
  bodyOf(node: number): number {
    return this.#reader.visibleBody(node)
  }

  /** Returns the key of a node's name. */
  keyOf(node: number): string {
    return nodeKey(this.#reader, node)
  }

  /** Returns the owners of the zone's chain of that type; empty = it has another one, or none. */
  chain(type: number): OwnerChain {
    const reader = this.#reader
    const chain = reader.findChain(this.#zone)
    const isOfType = chain !== 0 && reader.words[chain + L.CHAIN_TYPE] === type
    return new OwnerChain(reader, isOfType ? chain : 0)
  }
}
