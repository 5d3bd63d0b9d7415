import { assert } from '../../base/assert.ts'
import { equalOctets } from '../../base/octets.ts'
import { hashLabel, mixHash } from '../../dns/name/hash.ts'
import type { HashedName } from '../../dns/name/hashed-name.ts'
import * as L from './layout.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const {
  BODY_COUNT_SHIFT,
  BODY_PREVIOUS,
  BODY_RRSETS,
  BODY_STATE,
  BODY_VERSION,
  CHAIN_BLOCKS,
  CHAIN_PREVIOUS,
  CHAIN_VERSION,
  HEADER_INDEX,
  HEADER_LENGTH,
  HEADER_MAGIC,
  HEADER_VERSION,
  HEADER_ZONES,
  HEADER_ZONE_LABELS,
  MAGIC,
  NODE_BODY,
  NODE_KEY,
  NODE_NAME,
  NODE_NEXT,
  RRSET_HEAD,
  RRSET_REST,
  RRSET_STEERING_COUNT,
  SLOT_WORDS,
  TABLE_FREE_RDATA_MAX,
  TABLE_MASK,
  TABLE_SLOTS,
  ZONE_APEX,
  ZONE_APEX_NODE,
  ZONE_APEX_SIZE,
  ZONE_BORN,
  ZONE_CHAIN,
  ZONE_DIED,
  ZONE_ID,
  ZONE_NEWEST_NODE,
  ZONE_PREVIOUS,
} = L

/**
 * True if the first `octets` octets of `name` equal those from `words[at]` on, which are padded with
 * zeros. @hot
 */
function equalsWords(words: Uint32Array, at: number, name: Uint32Array, octets: number): boolean {
  const whole = octets >> 2
  for (let i = 0; i < whole; i++) if (words[at + i] !== name[i]) return false
  const rest = (1 << ((octets & 3) << 3)) - 1
  return rest === 0 || words[at + whole] === (name[whole]! & rest)
}

/** Gives readers the current arena; the writer replaces `buffer` after a compaction. */
export interface ArenaHandle {
  buffer: SharedArrayBuffer
}

/** Returns the version that was published last. */
export function imageVersionOf(buffer: SharedArrayBuffer): number {
  return Atomics.load(new Uint32Array(buffer, 0, HEADER_VERSION + 1), HEADER_VERSION)
}

const WILDCARD_LABEL = new Uint8Array([1, 0x2a])

/**
 * Reads one version of a zone image. Any number of readers, in any thread, may read one image
 * without locks. Zones, bodies and RRsets are word offsets into `words` (see layout.ts), 0 = none;
 * they are valid until the next `refresh`. Any call may replace the views, so callers must load
 * them again after each call.
 *
 * The views hold every block of the reader's version. The newest block of a list may belong to a
 * later version, and lie behind the end of the views or across it. So its last word to read decides
 * whether the views are replaced, not its first.
 */
export class ZoneReader {
  readonly handle: ArenaHandle
  words!: Uint32Array
  bytes!: Uint8Array
  view!: DataView
  /** Version that lookups see; set by `refresh`. */
  version = 0
  /** Label of the name where the apex of the zone found by `matchZone` starts. */
  zoneLabel = 0
  #buffer!: SharedArrayBuffer
  /** Version that was published at the last `refresh`; -1 = no refresh yet. */
  #published = -1
  /** The node index (see layout.ts): its offset, and its number of slots - 1. */
  index = 0
  indexMask = 0
  /** The same for the zone table. */
  zones = 0
  zonesMask = 0

  /** `handle`: `image.handle`, or in another thread `{ buffer }` with the same buffer. */
  constructor(handle: ArenaHandle) {
    this.handle = handle
    this.#view(handle.buffer)
    assert(this.words[HEADER_MAGIC] === MAGIC, 'buffer is a zone image of this machine')
    this.refresh()
  }

  /** Moves to the newest published version. Call once per query. @hot */
  refresh(): void {
    // A plain read suffices, because the next call sees a publish that this read misses. An atomic
    // read is a call.
    const isSame = this.words[HEADER_VERSION] === this.#published
    if (!isSame || this.handle.buffer !== this.#buffer) this.#moveOn()
    this.version = this.#published
  }

  #moveOn(): void {
    if (this.handle.buffer !== this.#buffer) this.#view(this.handle.buffer)
    const header = this.words
    this.#published = Atomics.load(header, HEADER_VERSION)
    this.index = Atomics.load(header, HEADER_INDEX)
    this.zones = Atomics.load(header, HEADER_ZONES)
    // Last: the writer grows the arena before it puts a table into the new part.
    if (Atomics.load(header, HEADER_LENGTH) > header.length) this.#view(this.#buffer)
    const words = this.words
    this.indexMask = words[this.index + TABLE_MASK]!
    this.zonesMask = words[this.zones + TABLE_MASK]!
  }

  /** Moves to a published version. It is readable as long as its arena exists. Not for the hot path. */
  refreshTo(version: number): void {
    this.refresh()
    this.version = version
  }

  /** Returns the node that was added last to a zone, within the views. It may belong to a later version. */
  newestNode(zone: number): number {
    const node = Atomics.load(this.words, zone + ZONE_NEWEST_NODE)
    if (node + NODE_NEXT >= this.words.length) this.#view(this.#buffer)
    return node
  }

  /** Labels of the deepest apex that was ever added. */
  get deepest(): number {
    return this.words[HEADER_ZONE_LABELS]!
  }

  /**
   * Returns the zone with the longest apex at or above `name` without its first `fromLabel` labels,
   * and sets `zoneLabel`. 0 = no such zone. @hot
   */
  matchZone(name: HashedName, fromLabel: number): number {
    const deepest = this.words[HEADER_ZONE_LABELS]!
    let label = name.labelCount - deepest
    if (label < fromLabel) label = fromLabel
    for (; label <= name.labelCount; label++) {
      const zone = this.#probeZone(name, label)
      if (zone !== 0) {
        this.zoneLabel = label
        return zone
      }
    }
    return 0
  }

  /** Whether `name` is in a zone below the one whose apex is at `zoneLabel` of the name. @hot */
  isInZoneBelow(name: HashedName, zoneLabel: number): boolean {
    let label = name.labelCount - this.words[HEADER_ZONE_LABELS]!
    if (label < 0) label = 0
    for (; label < zoneLabel; label++) {
      if (this.#probeZone(name, label) !== 0) return true
    }
    return false
  }

  /**
   * Returns the body of the node whose name is `name` from `label` on, in a zone with its apex at
   * `zoneLabel`; 0 if the name does not exist in this version. @hot
   */
  findBody(zone: number, name: HashedName, label: number, zoneLabel: number): number {
    if (label === zoneLabel) return this.visibleBody(this.words[zone + ZONE_APEX_NODE]!)
    const start = name.labelOffset[label]!
    const octets = name.labelOffset[zoneLabel]! - start
    const hash = name.suffixHash[label]!
    return this.#probe(this.words[zone + ZONE_ID]!, hash, name, start, octets, false)
  }

  /** Returns the body of the child `*` of that node, or 0. @hot */
  findWildcard(zone: number, name: HashedName, label: number, zoneLabel: number): number {
    const start = name.labelOffset[label]!
    const octets = name.labelOffset[zoneLabel]! - start
    const hash = hashLabel(name.suffixHash[label]!, WILDCARD_LABEL, 0)
    return this.#probe(this.words[zone + ZONE_ID]!, hash, name, start, octets, true)
  }

  /** Returns the RRset of one type in a body, or 0. @hot */
  findRRset(body: number, type: number): number {
    const words = this.words
    const end = body + BODY_RRSETS + (words[body + BODY_STATE]! >>> BODY_COUNT_SHIFT)
    for (let i = body + BODY_RRSETS; i < end; i++) {
      const rrset = words[i]!
      if (words[rrset + RRSET_HEAD]! >>> 16 === type) return rrset
    }
    return 0
  }

  /** Returns the octet offset of the packed rdata of an RRset. @hot */
  rdataStart(rrset: number): number {
    const words = this.words
    const count = words[rrset + RRSET_HEAD]! & 0xffff
    const table = count > TABLE_FREE_RDATA_MAX ? count : 0
    return (rrset + RRSET_REST + table + words[rrset + RRSET_STEERING_COUNT]!) * 4
  }

  /** Returns the word offset of the encoded steering of an RRset. @hot */
  steeringStart(rrset: number): number {
    const count = this.words[rrset + RRSET_HEAD]! & 0xffff
    return rrset + RRSET_REST + (count > TABLE_FREE_RDATA_MAX ? count : 0)
  }

  /** Returns how many records the RRset has. */
  rdataCount(rrset: number): number {
    return this.words[rrset + RRSET_HEAD]! & 0xffff
  }

  /** Returns the octet offset of the length of rdata `index`. `start`: the result of `rdataStart`. @hot */
  rdataAt(rrset: number, start: number, index: number): number {
    if ((this.words[rrset + RRSET_HEAD]! & 0xffff) > TABLE_FREE_RDATA_MAX) {
      return start + this.words[rrset + RRSET_REST + index]!
    }
    const bytes = this.bytes
    let at = start
    for (let i = 0; i < index; i++) at += 2 + ((bytes[at]! << 8) | bytes[at + 1]!)
    return at
  }

  #probeZone(name: HashedName, label: number): number {
    const words = this.words
    const hash = mixHash(name.suffixHash[label]!)
    const table = this.zones + TABLE_SLOTS
    for (let slot = hash & this.zonesMask; ; slot = (slot + 1) & this.zonesMask) {
      const zone = words[table + slot * SLOT_WORDS + 1]!
      if (zone === 0) return 0
      if (words[table + slot * SLOT_WORDS] !== hash) continue
      if (this.#isApex(zone, name, label)) return this.visibleZone(zone)
    }
  }

  /** Returns the zone of this version among `zone` and earlier zones with the same apex; 0 if none. @hot */
  visibleZone(zone: number): number {
    let newest = zone
    for (;;) {
      if (newest + ZONE_PREVIOUS >= this.words.length) this.#view(this.#buffer)
      if (newest === 0) return 0
      if (this.words[newest + ZONE_BORN]! <= this.version) break
      newest = this.words[newest + ZONE_PREVIOUS]!
    }
    const died = this.words[newest + ZONE_DIED]!
    return died === 0 || died > this.version ? newest : 0
  }

  #isApex(zone: number, name: HashedName, label: number): boolean {
    const start = name.labelOffset[label]!
    const octets = name.qnameOctets - start
    // This zone is newer than the views; an earlier one with this apex may belong to our version.
    if ((zone + ZONE_APEX) * 4 + octets > this.bytes.length) this.#view(this.#buffer)
    if ((this.words[zone + ZONE_APEX_SIZE]! & 0xffff) !== octets) return false
    return equalOctets(this.bytes, (zone + ZONE_APEX) * 4, name.qname, start, octets)
  }

  #probe(
    id: number,
    suffixHash: number,
    name: HashedName,
    start: number,
    octets: number,
    wildcard: boolean,
  ): number {
    const words = this.words
    const hash = L.nodeHash(suffixHash, id)
    const key = ((id << 16) | (wildcard ? octets + 2 : octets)) >>> 0
    const table = this.index + TABLE_SLOTS
    for (let slot = hash & this.indexMask; ; slot = (slot + 1) & this.indexMask) {
      const node = words[table + slot * SLOT_WORDS + 1]!
      if (node === 0) return 0
      // A node behind the end of the views was added after the refresh: it does not belong to our
      // version.
      if (words[table + slot * SLOT_WORDS] !== hash || node >= words.length) continue
      if (words[node + NODE_KEY] !== key) continue
      const isName =
        start === 0 && !wildcard
          ? equalsWords(words, node + NODE_NAME, name.nameWords, octets)
          : this.#isRelativeName(node, name.qname, start, octets, wildcard)
      if (isName) return this.visibleBody(node)
    }
  }

  #isRelativeName(
    node: number,
    name: Uint8Array,
    start: number,
    octets: number,
    wildcard: boolean,
  ): boolean {
    const bytes = this.bytes
    let at = (node + NODE_NAME) * 4
    if (wildcard) {
      if (bytes[at] !== 1 || bytes[at + 1] !== 0x2a) return false
      at += 2
    }
    return equalOctets(bytes, at, name, start, octets)
  }

  /** True if a name has no RRsets. @hot */
  isEmptyBody(body: number): boolean {
    return this.words[body + BODY_STATE]! >>> BODY_COUNT_SHIFT === 0
  }

  /** Returns the body of a node in this version, or 0 if the name does not exist in it. @hot */
  visibleBody(node: number): number {
    let body = this.words[node + NODE_BODY]!
    for (;;) {
      // This body is newer than the views; an earlier one may belong to our version.
      if (body + BODY_PREVIOUS >= this.words.length) this.#view(this.#buffer)
      if (body === 0) return 0
      if (this.words[body + BODY_VERSION]! <= this.version) break
      body = this.words[body + BODY_PREVIOUS]!
    }
    return this.words[body + BODY_STATE] === 0 ? 0 : body
  }

  /** Returns the chain of a zone in this version (see `CHAIN_REST`); 0 = the zone is not signed. @hot */
  findChain(zone: number): number {
    let chain = this.words[zone + ZONE_CHAIN]!
    for (;;) {
      if (chain + CHAIN_PREVIOUS >= this.words.length) this.#view(this.#buffer)
      if (chain === 0) return 0
      if (this.words[chain + CHAIN_VERSION]! <= this.version) break
      chain = this.words[chain + CHAIN_PREVIOUS]!
    }
    return this.words[chain + CHAIN_BLOCKS] === 0 ? 0 : chain
  }

  #view(buffer: SharedArrayBuffer): void {
    this.#buffer = buffer
    const length = Math.floor(buffer.byteLength / 4)
    this.words = new Uint32Array(buffer, 0, length)
    this.bytes = new Uint8Array(buffer, 0, length * 4)
    this.view = new DataView(buffer, 0, length * 4)
  }
}
