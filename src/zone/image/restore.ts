import { NSEC3_SHA1, nsec3Excess } from '../../dns/dnssec/nsec3.ts'
import { RRType } from '../../dns/iana/types.ts'
import { NameBuffer } from '../../dns/name/hashed-name.ts'
import { isWellFormed } from '../../dns/rdata/index.ts'
import type { Arena } from './arena.ts'
import type { WrittenArena } from './compact.ts'
import { COPY_VERSION } from './copy-captured.ts'
import * as L from './layout.ts'
import { NodeStore, type ZoneEntry } from './node-store.ts'
import { isDirectory } from './signature-directory.ts'
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
const { NSEC, NSEC3, RRSIG } = RRType
/** Octets of NSEC3PARAM rdata before the salt, and with the longest one. */
const NSEC3_SALT = 5
const NSEC3PARAM_OCTETS_MAX = NSEC3_SALT + 255

/** What an arena may contain. */
export interface RestoreOptions {
  readonly checkSteering: SteeringCheck
  /** Whether its zones may have chains (see layout.ts). */
  readonly mayBeSigned: boolean
}

/** Nodes between two pauses. */
const SLICE_NODES = 4096

/**
 * Validates an arena that contains only the output of `copyCaptured`, or of an image that was published once. Pauses
 * now and then. Follows every offset, so that
 * no lookup and no later change of an image made from it leaves the arena or loops, whatever its
 * octets are. Returns undefined if the arena is invalid.
 */
export function* restoreArena(
  arena: Arena,
  options: RestoreOptions,
): Generator<void, WrittenArena | undefined> {
  const { words } = arena
  const isOurs =
    words[L.HEADER_MAGIC] === L.MAGIC &&
    words[L.HEADER_TAIL] === arena.tail &&
    words[L.HEADER_VERSION] === COPY_VERSION
  if (!isOurs) return undefined
  const walk = new ArenaWalk(arena, options)
  const zoneOffsets = walk.offsetsOfTable(words[L.HEADER_ZONES]!)
  const nodeOffsets = walk.offsetsOfTable(words[L.HEADER_INDEX]!)
  if (zoneOffsets === undefined || nodeOffsets === undefined) return undefined
  const zones: ZoneEntry[] = []
  for (const offset of zoneOffsets) {
    const zone = yield* walk.zone(offset)
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
  readonly #options: RestoreOptions
  /** One bit per word: a node begins there. */
  readonly #nodes: Uint8Array
  readonly #name = new NameBuffer()

  constructor(arena: Arena, options: RestoreOptions) {
    this.#words = arena.words
    this.#bytes = arena.bytes
    this.#tail = arena.tail
    this.#options = options
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

  *zone(offset: number): Generator<void, ZoneEntry | undefined> {
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
      if (zone.names % SLICE_NODES === 0) yield
    }
    const apexNode = words[offset + L.ZONE_APEX_NODE]!
    const isApex = this.isNode(apexNode) && words[apexNode + L.NODE_KEY] === (id << 16) >>> 0
    const chain = words[offset + L.ZONE_CHAIN]!
    const chainWords = chain === 0 ? 0 : this.#chainWords(chain, id)
    zone.liveWords += chainWords
    return isApex && (chain === 0 || chainWords > 0) ? zone : undefined
  }

  /** Returns the words of the chain of a zone; 0 = the chain is invalid. */
  #chainWords(chain: number, id: number): number {
    const words = this.#words
    if (!this.#options.mayBeSigned || !this.#holds(chain, L.CHAIN_REST)) return 0
    const type = words[chain + L.CHAIN_TYPE]!
    const count = words[chain + L.CHAIN_BLOCKS]!
    const parameterWords = words[chain + L.CHAIN_PARAMETER_WORDS]!
    const isNewest =
      words[chain + L.CHAIN_VERSION] === COPY_VERSION && words[chain + L.CHAIN_PREVIOUS] === 0
    let size = L.CHAIN_REST + parameterWords + count * 2
    if (!isNewest || count === 0 || !this.#holds(chain, size)) return 0
    if (type !== NSEC && type !== NSEC3) return 0
    if (parameterWords !== (type === NSEC ? 0 : this.#parameterWords(chain + L.CHAIN_REST)))
      return 0
    const firsts = chain + L.CHAIN_REST + parameterWords
    for (let i = 0; i < count; i++) {
      const block = words[firsts + count + i]!
      const blockWords = this.#chainBlockWords(block, id, type)
      if (blockWords === 0 || words[block + L.CHAIN_BLOCK_NODES] !== words[firsts + i]) return 0
      size += blockWords
      // Blocks do not overlap, so this takes no longer than the arena is large.
      if (size > this.#tail) return 0
    }
    return size
  }

  /** Returns the words of a chain block; 0 = it is invalid. */
  #chainBlockWords(block: number, id: number, type: number): number {
    const words = this.#words
    if (!this.#holds(block, L.CHAIN_BLOCK_NODES)) return 0
    const count = words[block + L.CHAIN_BLOCK_COUNT]!
    const size = L.CHAIN_BLOCK_NODES + count
    if (count === 0 || !this.#holds(block, size)) return 0
    for (let at = block + L.CHAIN_BLOCK_NODES; at < block + size; at++) {
      if (!this.#isInChain(words[at]!, id, type)) return 0
    }
    return size
  }

  /** Returns the words of NSEC3PARAM rdata; 0 = readers cannot hash with it. */
  #parameterWords(at: number): number {
    const rdata = this.#bytes.subarray(at * 4, at * 4 + NSEC3PARAM_OCTETS_MAX)
    if (rdata[0] !== NSEC3_SHA1 || nsec3Excess(rdata, 0) !== '') return 0
    return Math.ceil((NSEC3_SALT + rdata[NSEC3_SALT - 1]!) / 4)
  }

  /** Whether a node of this zone has an RRset of the type. */
  #isInChain(node: number, id: number, type: number): boolean {
    const words = this.#words
    if (!this.isNode(node) || words[node + L.NODE_KEY]! >>> 16 !== id) return false
    return this.#find(words[node + L.NODE_BODY]!, type) !== 0
  }

  /** Returns the RRset of a type in a body, or 0. */
  #find(body: number, type: number): number {
    const words = this.#words
    const end = body + L.BODY_RRSETS + (words[body + L.BODY_STATE]! >>> L.BODY_COUNT_SHIFT)
    for (let i = body + L.BODY_RRSETS; i < end; i++) {
      if (words[words[i]! + L.RRSET_HEAD]! >>> 16 === type) return words[i]!
    }
    return 0
  }

  /** Whether the signatures in a body of valid RRsets have no directory, or a valid one. */
  #isDirectoryOf(body: number): boolean {
    const words = this.#words
    const rrset = this.#find(body, RRSIG)
    const count = rrset === 0 ? 0 : words[rrset + L.RRSET_STEERING_COUNT]!
    if (count === 0) return true
    const signatures = words[rrset + L.RRSET_HEAD]! & 0xffff
    const start = rrset + L.RRSET_REST + (signatures > L.TABLE_FREE_RDATA_MAX ? signatures : 0)
    return isDirectory(words, start, count, signatures, (type) => {
      const signed = this.#find(body, type)
      return signed === 0 ? 0 : words[signed + L.RRSET_HEAD]! & 0xffff
    })
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
    return this.#isDirectoryOf(body) ? size : 0
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
    // The words of signatures are a directory, which is checked with the RRsets that they sign.
    const isSteered = steeringCount > 0 && words[rrset + L.RRSET_HEAD]! >>> 16 !== RRSIG
    const { checkSteering } = this.#options
    if (isSteered && !checkSteering(words, steering, steeringCount, count)) return false
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
