import { runWhole } from '../../base/slices.ts'
import { hashLabel } from '../../dns/name/hash.ts'
import { NameBuffer } from '../../dns/name/hashed-name.ts'
import { Arena } from './arena.ts'
import { ChainBuilder, nodesOf } from './chain-builder.ts'
import { ChainCursor } from './chain-cursor.ts'
import * as L from './layout.ts'
import { NodeStore, type ZoneEntry } from './node-store.ts'
import type { ZoneReader } from './reader.ts'
import { slotsFor } from './table.ts'
import type { ZoneId } from './types.ts'
import { ZoneTable } from './zone-table.ts'

/** An arena with the data that its writer has about it. */
export interface WrittenArena {
  readonly arena: Arena
  readonly nodes: NodeStore
  readonly zoneTable: ZoneTable
  readonly zones: ZoneEntry[]
}

type Zones = ReadonlyMap<ZoneId, ZoneEntry>

/**
 * Copies `zones`, as `from` sees them, into a new arena, with the version `version`. Zones keep
 * their ids. The writer of the old arena may continue in the meantime; `NODE_CHILDREN` is then not
 * reliable.
 */
export function compactArena(
  from: ZoneReader,
  zones: readonly ZoneEntry[],
  version: number,
  maxOctets: number,
): WrittenArena {
  const all = new Map(zones.map((zone) => [zone.id, zone]))
  return new ArenaCopy(from, all, version, maxOctets).finish(all, version)
}

/** Copies zones into a new arena without garbage, at once or in steps between which they change. */
export class ArenaCopy {
  readonly #from: ZoneReader
  /** The version of all blocks of the copy. */
  readonly #version: number
  readonly #nodes: NodeStore
  readonly #zoneTable: ZoneTable
  /** The zones of the copy. */
  readonly #copies = new Map<ZoneId, ZoneEntry>()
  /** Chain blocks of the copy by those that they were copied from. */
  readonly #chainBlocks = new Map<number, number>()
  /** Nodes that changed after they may have been copied: the caller adds them. */
  readonly changed = new Set<number>()

  /** `zones`: as they are now, for the size of the copy. */
  constructor(from: ZoneReader, zones: Zones, version: number, maxOctets: number) {
    this.#from = from
    this.#version = version
    let names = 0
    let live = 0
    for (const zone of zones.values()) {
      names += zone.names
      live += zone.liveWords
    }
    const nodeSlots = slotsFor(names)
    const zoneSlots = slotsFor(zones.size)
    const octets = (live + (nodeSlots + zoneSlots) * L.SLOT_WORDS) * 4
    const arena = new Arena(Math.ceil(octets * 1.125), maxOctets)
    this.#nodes = NodeStore.create(arena, nodeSlots)
    this.#zoneTable = ZoneTable.create(arena, zoneSlots)
  }

  /** Words of the copy. */
  get words(): number {
    return this.#nodes.arena.tail
  }

  /**
   * Copies what has not been copied and what has changed since, as the reader sees it. Pauses often: zones and nodes
   * may change then, and the reader may see a new version. Call it to the end.
   */
  *run(zones: Zones): Generator<void, void> {
    for (const zone of zones.values()) {
      if (!this.#copies.has(zone.id)) yield* this.#copyZone(zone)
    }
    const nodes = [...this.changed]
    this.changed.clear()
    for (const node of nodes) {
      this.#copyAgain(node)
      yield
    }
    for (const zone of zones.values()) yield* this.#copyChainBlocks(zone)
  }

  /** Copies all that is left. `zones`: those of the published version `version`, which the reader sees. */
  finish(zones: Zones, version: number): WrittenArena {
    runWhole(this.run(zones))
    const nodes = this.#nodes
    const { arena } = nodes
    const left = new Map(this.#copies)
    for (const zone of zones.values()) {
      left.delete(zone.id)
      this.#finishChain(zone)
    }
    for (const block of this.#chainBlocks.values()) nodes.garbageWords += blockWords(arena, block)
    for (const zone of left.values()) {
      arena.words[zone.offset + L.ZONE_DIED] = version
      nodes.discard(zone, zone.liveWords)
    }
    arena.words[L.HEADER_TAIL] = arena.tail
    Atomics.store(arena.words, L.HEADER_VERSION, version)
    const copies = Array.from(zones.keys(), (id) => this.#copies.get(id)!)
    return { arena, nodes, zoneTable: this.#zoneTable, zones: copies }
  }

  *#copyZone({ id, offset: source, labels }: ZoneEntry): Generator<void, void> {
    const from = this.#from
    const { arena } = this.#nodes
    const apex = new NameBuffer()
    const at = (source + L.ZONE_APEX) * 4
    apex.set(from.bytes, at, at + 255)
    const offset = this.#zoneTable.add(id, apex, this.#version)
    const copy = { id, offset, labels, names: 0, liveWords: arena.tail - offset }
    this.#copies.set(id, copy)
    let node = from.newestNode(source)
    for (; node !== 0; node = from.words[node + L.NODE_NEXT]!) {
      if (from.visibleBody(node) !== 0) this.#copyNode(copy, node)
      yield
    }
  }

  /** Copies a node that may be in the copy already. Its name may have ceased to exist. */
  #copyAgain(node: number): void {
    const zone = this.#copies.get(this.#from.words[node + L.NODE_KEY]! >>> 16)
    if (zone === undefined) return
    const nodes = this.#nodes
    const copy = this.#find(zone, node)
    if (copy === 0) {
      if (this.#from.visibleBody(node) !== 0) this.#copyNode(zone, node)
      return
    }
    for (const rrset of nodes.rrsets(copy)) {
      nodes.discard(zone, nodes.arena.words[rrset + L.RRSET_WORDS]!)
    }
    this.#copyContent(zone, node, copy)
  }

  /** Copies a node that is not in the copy, and returns it. */
  #copyNode(zone: ZoneEntry, node: number): number {
    const copy = this.#append(zone, node)
    this.#copyContent(zone, node, copy)
    return copy
  }

  /** Returns the node of the copy with the name of a node; 0 = it has none. */
  #find(zone: ZoneEntry, node: number): number {
    const { bytes, words } = this.#from
    const octets = words[node + L.NODE_KEY]! & 0xffff
    const hash = this.#hashOf(zone, node)
    return this.#nodes.findRelative(hash, zone.id, bytes, (node + L.NODE_NAME) * 4, octets)
  }

  /** Appends a node without content and with the name of another; returns it. */
  #append(zone: ZoneEntry, node: number): number {
    const { bytes, words } = this.#from
    const nodes = this.#nodes
    nodes.reserveIndex(1)
    const octets = words[node + L.NODE_KEY]! & 0xffff
    const copy = nodes.append(zone, octets)
    const source = (node + L.NODE_NAME) * 4
    const target = (copy + L.NODE_NAME) * 4
    for (let i = 0; i < octets; i++) nodes.arena.bytes[target + i] = bytes[source + i]!
    nodes.enter(copy, this.#hashOf(zone, node))
    if (octets === 0) nodes.arena.words[zone.offset + L.ZONE_APEX_NODE] = copy
    return copy
  }

  /** Copies the RRsets and the body of a node behind the node `copy`: a lookup reads few cache lines. */
  #copyContent(zone: ZoneEntry, node: number, copy: number): void {
    const body = this.#from.visibleBody(node)
    const { words } = this.#from
    const nodes = this.#nodes
    nodes.arena.words[copy + L.NODE_CHILDREN] = words[node + L.NODE_CHILDREN]!
    const state = body === 0 ? 0 : words[body + L.BODY_STATE]!
    const count = state >>> L.BODY_COUNT_SHIFT
    const rrsets: number[] = []
    for (let i = 0; i < count; i++) {
      rrsets.push(this.#copyRRset(zone, words[body + L.BODY_RRSETS + i]!))
    }
    nodes.appendBody(zone, copy, this.#version, state & L.LASTING_FLAGS, rrsets)
  }

  #copyRRset(zone: ZoneEntry, rrset: number): number {
    const { words } = this.#from
    const { arena } = this.#nodes
    const size = words[rrset + L.RRSET_WORDS]!
    const copy = arena.allocate(size)
    const target = arena.words
    for (let i = 0; i < size; i++) target[copy + i] = words[rrset + i]!
    zone.liveWords += size
    return copy
  }

  *#copyChainBlocks({ id, offset }: ZoneEntry): Generator<void, void> {
    const zone = this.#copies.get(id)
    if (zone === undefined) return
    const chain = this.#from.findChain(offset)
    const { words } = this.#from
    const cursor = new ChainCursor()
    cursor.enter(words, chain)
    for (let i = 0; i < cursor.blocks; i++) {
      const block = cursor.blockAt(words, i)
      if (this.#chainBlocks.has(block)) continue
      const copy = yield* this.#copyChainBlock(zone, block)
      this.#chainBlocks.set(block, copy)
    }
  }

  *#copyChainBlock(zone: ZoneEntry, block: number): Generator<void, number> {
    const nodes: number[] = []
    for (const node of nodesOf(this.#from.words, block)) {
      // It was not copied if it was added since, or if its name has ceased to exist.
      nodes.push(this.#find(zone, node) || this.#copyNode(zone, node))
      // Finding a node takes about as long as copying it.
      yield
    }
    const { arena } = this.#nodes
    const copy = arena.allocate(L.CHAIN_BLOCK_NODES + nodes.length)
    arena.words[copy + L.CHAIN_BLOCK_COUNT] = nodes.length
    arena.words.set(nodes, copy + L.CHAIN_BLOCK_NODES)
    return copy
  }

  /** Writes the chain of a zone. All its blocks are copied. */
  #finishChain({ id, offset }: ZoneEntry): void {
    const chain = this.#from.findChain(offset)
    if (chain === 0) return
    const { words, bytes } = this.#from
    const zone = this.#copies.get(id)!
    const builder = new ChainBuilder(this.#nodes)
    const cursor = new ChainCursor()
    cursor.enter(words, chain)
    for (let i = 0; i < cursor.blocks; i++) {
      const block = cursor.blockAt(words, i)
      const copy = this.#chainBlocks.get(block)!
      this.#chainBlocks.delete(block)
      zone.liveWords += blockWords(this.#nodes.arena, copy)
      builder.addBlock(copy)
    }
    const at = (chain + L.CHAIN_REST) * 4
    const octets = words[chain + L.CHAIN_PARAMETER_WORDS] === 0 ? 0 : 5 + bytes[at + 4]!
    const kind = { type: words[chain + L.CHAIN_TYPE]!, parameters: bytes.slice(at, at + octets) }
    builder.finish(zone, kind, this.#version)
  }

  /** Returns the finished hash of a node's whole name: the apex's, continued with the labels from right to left. */
  #hashOf(zone: ZoneEntry, node: number): number {
    const { bytes, words } = this.#from
    const start = (node + L.NODE_NAME) * 4
    const octets = words[node + L.NODE_KEY]! & 0xffff
    let labels = 0
    for (let at = 0; at < octets; at += bytes[start + at]! + 1) labelStarts[labels++] = at
    let hash = this.#nodes.arena.words[zone.offset + L.ZONE_HASH]!
    while (labels > 0) hash = hashLabel(hash, bytes, start + labelStarts[--labels]!)
    return L.nodeHash(hash, zone.id)
  }
}

const labelStarts = new Uint8Array(128)

function blockWords({ words }: Arena, block: number): number {
  return L.CHAIN_BLOCK_NODES + words[block + L.CHAIN_BLOCK_COUNT]!
}
