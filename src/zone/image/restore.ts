import { NameBuffer } from '../../dns/name/hashed-name.ts'
import { isWellFormed } from '../../dns/rdata/index.ts'
import type { Arena } from './arena.ts'
import type { WrittenArena } from './compact.ts'
import { COPY_VERSION } from './copy-captured.ts'
import * as L from './layout.ts'
import { NodeStore, type ZoneEntry } from './node-store.ts'
import { ZoneTable } from './zone-table.ts'

/**
 * Returns true if the `count` words of encoded steering at `words[offset]` are valid for a set of
 * `rdataCount` rdata.
 */
export type SteeringCheck = (
  words: Uint32Array,
  offset: number,
  count: number,
  rdataCount: number,
) => boolean

/** Types with rdata of a fixed size, which most sets have, and their octets; others are read rdata by rdata. */
const A = 1
const A_OCTETS = 4
const AAAA = 28
const AAAA_OCTETS = 16

/**
 * Validates an arena that contains only the output of `copyCaptured`. Follows every offset, so that
 * no lookup and no later change of an image made from it leaves the arena or loops, whatever its
 * octets are. Returns undefined if the arena is invalid.
 */
export function restoreArena(arena: Arena, checkSteering: SteeringCheck): WrittenArena | undefined {
  const { words } = arena
  const isOurs =
    words[L.HEADER_MAGIC] === L.MAGIC &&
    words[L.HEADER_TAIL] === arena.tail &&
    words[L.HEADER_VERSION] === COPY_VERSION
  if (!isOurs) return undefined
  const walk = new ArenaWalk(arena, checkSteering)
  const zoneOffsets = walk.offsetsOfTable(words[L.HEADER_ZONES]!)
  const nodeOffsets = walk.offsetsOfTable(words[L.HEADER_INDEX]!)
  if (zoneOffsets === undefined || nodeOffsets === undefined) return undefined
  const zones: ZoneEntry[] = []
  for (const offset of zoneOffsets) {
    const zone = walk.zone(offset)
    if (zone === undefined || zones.some(({ id }) => id === zone.id)) return undefined
    zones.push(zone)
  }
  const names = zones.reduce((sum, zone) => sum + zone.names, 0)
  const deepest = zones.reduce((most, zone) => Math.max(most, zone.labels), 0)
  const isIndexed = nodeOffsets.length === names && nodeOffsets.every((at) => walk.isNode(at))
  if (!isIndexed || words[L.HEADER_ZONE_LABELS] !== deepest) return undefined
  const nodes = new NodeStore(arena, names)
  return { arena, nodes, zoneTable: new ZoneTable(arena, zones.length), zones }
}

/** Walks all blocks of an arena. Methods return undefined or false if an offset is out of bounds. */
class ArenaWalk {
  readonly #words: Uint32Array
  readonly #bytes: Uint8Array
  readonly #tail: number
  readonly #checkSteering: SteeringCheck
  /** One bit per word: a node begins there. */
  readonly #nodes: Uint8Array
  readonly #name = new NameBuffer()

  constructor(arena: Arena, checkSteering: SteeringCheck) {
    this.#words = arena.words
    this.#bytes = arena.bytes
    this.#tail = arena.tail
    this.#checkSteering = checkSteering
    this.#nodes = new Uint8Array((arena.tail >> 3) + 1)
  }

  isNode(offset: number): boolean {
    return (this.#nodes[offset >> 3]! & (1 << (offset & 7))) !== 0
  }

  /** Returns the offsets in a table, which must be at most half full. */
  offsetsOfTable(table: number): Uint32Array | undefined {
    if (!this.#holds(table, L.TABLE_SLOTS)) return undefined
    const slots = this.#words[table + L.TABLE_MASK]! + 1
    const isPower = slots >= 2 && Number.isInteger(Math.log2(slots))
    if (!isPower || !this.#holds(table, L.TABLE_SLOTS + slots * L.SLOT_WORDS)) return undefined
    const offsets = new Uint32Array(slots / 2)
    let count = 0
    for (let slot = 0; slot < slots; slot++) {
      const offset = this.#words[table + L.TABLE_SLOTS + slot * L.SLOT_WORDS + 1]!
      if (offset === 0) continue
      if (count === offsets.length) return undefined
      offsets[count++] = offset
    }
    return offsets.subarray(0, count)
  }

  zone(offset: number): ZoneEntry | undefined {
    const words = this.#words
    if (!this.#holds(offset, L.ZONE_APEX)) return undefined
    const id = words[offset + L.ZONE_ID]!
    const octets = words[offset + L.ZONE_APEX_SIZE]! & 0xffff
    const blockWords = L.ZONE_APEX + Math.ceil(octets / 4)
    const isAlive =
      id >= 1 &&
      id <= L.ZONE_MAX &&
      words[offset + L.ZONE_BORN] === COPY_VERSION &&
      words[offset + L.ZONE_DIED] === 0 &&
      words[offset + L.ZONE_PREVIOUS] === 0 &&
      // Zones of DNSRecords are never signed.
      words[offset + L.ZONE_CHAIN] === 0 &&
      words[offset + L.ZONE_DELEGATES]! <= 1
    if (!isAlive || !this.#holds(offset, blockWords)) return undefined
    const apexAt = (offset + L.ZONE_APEX) * 4
    const name = this.#name
    const isName = name.set(this.#bytes, apexAt, apexAt + octets) && name.qnameOctets === octets
    const labels = words[offset + L.ZONE_APEX_SIZE]! >>> 16
    if (!isName || name.labelCount !== labels) return undefined
    const zone = { id, offset, labels, names: 0, liveWords: blockWords }
    // Each link must lead to a lower offset, so the list of nodes ends.
    let before = this.#tail
    for (let node = words[offset + L.ZONE_NEWEST_NODE]!; node !== 0; ) {
      const size = node < before ? this.#nodeAndBody(node, id, octets) : 0
      if (size === 0) return undefined
      zone.names++
      zone.liveWords += size
      this.#nodes[node >> 3]! |= 1 << (node & 7)
      before = node
      node = words[node + L.NODE_NEXT]!
    }
    const apexNode = words[offset + L.ZONE_APEX_NODE]!
    const isApex = this.isNode(apexNode) && words[apexNode + L.NODE_KEY] === (id << 16) >>> 0
    return isApex ? zone : undefined
  }

  #holds(offset: number, count: number): boolean {
    return offset >= L.HEADER_WORDS && offset + count <= this.#tail
  }

  /** Returns the words of a node with its body and RRsets; 0 = the node is invalid. */
  #nodeAndBody(node: number, id: number, apexOctets: number): number {
    const words = this.#words
    if (!this.#holds(node, L.NODE_NAME)) return 0
    const key = words[node + L.NODE_KEY]!
    const octets = key & 0xffff
    const nodeWords = L.NODE_NAME + Math.ceil(octets / 4)
    if (key >>> 16 !== id || octets + apexOctets > 255 || !this.#holds(node, nodeWords)) return 0
    const at = (node + L.NODE_NAME) * 4
    if (!this.#areLabels(at, at + octets)) return 0
    const body = words[node + L.NODE_BODY]!
    if (!this.#holds(body, L.BODY_RRSETS)) return 0
    const state = words[body + L.BODY_STATE]!
    const count = state >>> L.BODY_COUNT_SHIFT
    const isNewest =
      words[body + L.BODY_VERSION] === COPY_VERSION && words[body + L.BODY_PREVIOUS] === 0
    const isCounted = count <= L.RRSETS_MAX && this.#holds(body, L.BODY_RRSETS + count)
    if (state === 0 || !isNewest || !isCounted) return 0
    let size = nodeWords + L.BODY_RRSETS + count
    for (let i = 0, typeBefore = 0; i < count; i++) {
      const rrset = words[body + L.BODY_RRSETS + i]!
      if (!this.#isRRset(rrset) || words[rrset + L.RRSET_HEAD]! >>> 16 <= typeBefore) return 0
      typeBefore = words[rrset + L.RRSET_HEAD]! >>> 16
      size += words[rrset + L.RRSET_WORDS]!
    }
    return size
  }

  #areLabels(start: number, end: number): boolean {
    let at = start
    while (at < end) {
      const octets = this.#bytes[at]!
      if (octets === 0 || octets > 63) return false
      at += octets + 1
    }
    return at === end
  }

  #isRRset(rrset: number): boolean {
    const words = this.#words
    if (!this.#holds(rrset, L.RRSET_REST)) return false
    const count = words[rrset + L.RRSET_HEAD]! & 0xffff
    const size = words[rrset + L.RRSET_WORDS]!
    const steeringCount = words[rrset + L.RRSET_STEERING_COUNT]!
    const tableWords = count > L.TABLE_FREE_RDATA_MAX ? count : 0
    const isSized = count > 0 && this.#holds(rrset, size) && words[rrset + L.RRSET_TTL]! < 2 ** 31
    const steering = rrset + L.RRSET_REST + tableWords
    const isRoomy = L.RRSET_REST + tableWords + steeringCount <= size
    if (!isSized || !isRoomy) return false
    const isSteered = steeringCount > 0
    if (isSteered && !this.#checkSteering(words, steering, steeringCount, count)) return false
    return this.#isRdata(rrset, count, (steering + steeringCount) * 4, (rrset + size) * 4)
  }

  #isRdata(rrset: number, count: number, start: number, end: number): boolean {
    const bytes = this.#bytes
    const type = this.#words[rrset + L.RRSET_HEAD]! >>> 16
    let at = start
    for (let i = 0; i < count; i++) {
      const isTabled = count > L.TABLE_FREE_RDATA_MAX
      if (isTabled && this.#words[rrset + L.RRSET_REST + i] !== at - start) return false
      const next = at + 2 <= end ? at + 2 + ((bytes[at]! << 8) | bytes[at + 1]!) : end + 1
      if (next > end || !this.#isRdataOf(type, at + 2, next)) return false
      at = next
    }
    // The padding fills the last word and nothing more.
    return end - at < 4
  }

  #isRdataOf(type: number, start: number, end: number): boolean {
    if (type === A) return end - start === A_OCTETS
    if (type === AAAA) return end - start === AAAA_OCTETS
    return isWellFormed(type, this.#bytes.subarray(start, end))
  }
}
