import { sortInSlices } from '../../base/sort.ts'
import {
  hasSameNsec3Parameters,
  NSEC3_SHA1,
  Nsec3Hasher,
  nsec3Excess,
} from '../../dns/dnssec/nsec3.ts'
import { RRType } from '../../dns/iana/types.ts'
import { type HashedName, NameBuffer } from '../../dns/name/hashed-name.ts'
import { CanonicalOrder } from './canonical-order.ts'
import { ChainBuilder, type ChainKind } from './chain-builder.ts'
import { ChainCursor } from './chain-cursor.ts'
import * as L from './layout.ts'
import type { NodeStore, ZoneEntry } from './node-store.ts'

/** The name that is searched. */
const scratch = new NameBuffer()

/** Nodes between two pauses. */
const SLICE_NODES = 1024

/** A new chain has space in its blocks for names that join it. */
const NEW_BLOCK_NODES = L.CHAIN_BLOCK_MAX / 2

/**
 * Writes the chains of an arena. Sorts the owners of a zone's NSEC or NSEC3 records in canonical
 * order, so that readers find the record that covers a name by binary search.
 */
export class ChainStore {
  readonly #nodes: NodeStore
  #ownOrder: CanonicalOrder | undefined

  constructor(nodes: NodeStore) {
    this.#nodes = nodes
  }

  /** False if the zone neither has a chain nor gets one. */
  isNeeded(entry: ZoneEntry): boolean {
    const { words } = this.#nodes.arena
    if (words[entry.offset + L.ZONE_CHAIN] !== 0) return true
    const apex = words[entry.offset + L.ZONE_APEX_NODE]!
    return [RRType.NSEC, RRType.NSEC3PARAM].some((type) => this.#nodes.findRRset(apex, type) !== 0)
  }

  /**
   * Changes the chain of a zone to its unpublished content; pauses now and then. `changed`: owners of
   * the NSEC and NSEC3 RRsets that changed since the last chain, undefined = any owner. `version`: the
   * version of the next publish. Returns true if it wrote something. @throws InputError if the arena
   * is full.
   */
  *update(
    entry: ZoneEntry,
    apex: HashedName,
    changed: readonly Uint8Array[] | undefined,
    version: number,
  ): Generator<void, boolean> {
    const { words } = this.#nodes.arena
    const kind = this.#kindOf(entry, apex)
    const old = words[entry.offset + L.ZONE_CHAIN]!
    const builder = new ChainBuilder(this.#nodes)
    if (kind !== undefined && changed !== undefined && this.#isOfKind(old, kind)) {
      if (!(yield* this.#merge(entry, kind, old, changed, builder))) return false
    } else {
      if (kind === undefined && (old === 0 || words[old + L.CHAIN_BLOCKS] === 0)) return false
      builder.dropChain(old)
      if (kind !== undefined) yield* this.#collect(entry, kind, builder)
    }
    builder.finish(entry, kind ?? NO_CHAIN, version)
    return true
  }

  /** Made for the first signed zone. */
  get #order(): CanonicalOrder {
    this.#ownOrder ??= new CanonicalOrder()
    return this.#ownOrder
  }

  /** Returns NSEC3 if the apex has a usable NSEC3 chain, else NSEC; undefined = the zone has no chain. */
  #kindOf(entry: ZoneEntry, apex: HashedName): ChainKind | undefined {
    const nodes = this.#nodes
    const { words } = nodes.arena
    const node = words[entry.offset + L.ZONE_APEX_NODE]!
    const set = nodes.findRRset(node, RRType.NSEC3PARAM)
    for (const parameters of set === 0 ? [] : this.#rdata(set)) {
      const isUsable =
        parameters[0] === NSEC3_SHA1 && parameters[1] === 0 && nsec3Excess(parameters, 0) === ''
      if (!isUsable) continue
      const kind = { type: RRType.NSEC3, parameters }
      const hasher = new Nsec3Hasher()
      hasher.hash(apex.qname, 0, apex.qnameOctets, false, parameters, 0)
      const hashed = this.#find(entry, hasher.label, apex)
      if (hashed !== 0 && this.#isIn(hashed, kind)) return kind
    }
    const hasNsec = nodes.findRRset(node, RRType.NSEC) !== 0
    return hasNsec ? { type: RRType.NSEC, parameters: new Uint8Array(0) } : undefined
  }

  /** True if a node owns a record of the chain. */
  #isIn(node: number, { type, parameters }: ChainKind): boolean {
    const set = this.#nodes.findRRset(node, type)
    if (set === 0 || type === RRType.NSEC) return set !== 0
    return this.#rdata(set).some((rdata) => hasSameNsec3Parameters(rdata, 0, parameters, 0))
  }

  /** Adds all nodes of the chain of a zone to an empty chain. */
  *#collect(entry: ZoneEntry, kind: ChainKind, builder: ChainBuilder): Generator<void, void> {
    const { words } = this.#nodes.arena
    const found: number[] = []
    let seen = 0
    let node = words[entry.offset + L.ZONE_NEWEST_NODE]!
    for (; node !== 0; node = words[node + L.NODE_NEXT]!) {
      if (this.#isIn(node, kind)) found.push(node)
      if (++seen % SLICE_NODES === 0) yield
    }
    // The list of nodes starts with the newest, and most zones are written in order: reversed, it
    // is nearly sorted.
    const nodes = Uint32Array.from(found).reverse()
    yield* this.#sort(nodes)
    for (let from = 0; from < nodes.length; from += NEW_BLOCK_NODES) {
      builder.addNodes(nodes.subarray(from, from + NEW_BLOCK_NODES))
      builder.endBlock()
    }
  }

  /**
   * Adds the nodes of the chain `old`, without those that left it and with those that joined it.
   * Returns false if no node left or joined.
   */
  *#merge(
    entry: ZoneEntry,
    kind: ChainKind,
    old: number,
    changed: readonly Uint8Array[],
    builder: ChainBuilder,
  ): Generator<void, boolean> {
    const { words, bytes } = this.#nodes.arena
    const cursor = new ChainCursor()
    cursor.enter(words, old)
    const isOwner = (node: number): boolean => {
      this.#order.setNode(words, bytes, node)
      return cursor.seek(words, bytes, this.#order)
    }
    const owners = new Set(changed.map((owner) => this.#findOwner(entry, owner)))
    owners.delete(0)
    const moved = Uint32Array.from(owners).filter(
      (node) => isOwner(node) !== this.#isIn(node, kind),
    )
    if (moved.length === 0) return false
    yield* this.#sort(moved)
    let block = -1
    let nodes: Uint32Array = new Uint32Array(0)
    let from = 0
    for (const [i, node] of moved.entries()) {
      const hasLeft = isOwner(node)
      if (cursor.block !== block) {
        builder.addNodes(nodes.subarray(from))
        builder.endBlock()
        while (++block < cursor.block) builder.addBlock(cursor.blockAt(words, block))
        nodes = builder.dropBlock(cursor.blockAt(words, block))
        from = 0
      }
      const at = hasLeft ? cursor.index : cursor.index + 1
      builder.addNodes(nodes.subarray(from, at))
      if (!hasLeft) builder.addNodes([node])
      from = hasLeft ? at + 1 : at
      if (i % SLICE_NODES === SLICE_NODES - 1) yield
    }
    builder.addNodes(nodes.subarray(from))
    builder.endBlock()
    while (++block < cursor.blocks) builder.addBlock(cursor.blockAt(words, block))
    return true
  }

  *#sort(nodes: Uint32Array): Generator<void, void> {
    const { words, bytes } = this.#nodes.arena
    yield* sortInSlices(nodes, (a, b) => {
      this.#order.setNode(words, bytes, a)
      return this.#order.compare(words, bytes, b)
    })
  }

  #isOfKind(chain: number, { type, parameters }: ChainKind): boolean {
    const { words, bytes } = this.#nodes.arena
    if (chain === 0 || words[chain + L.CHAIN_BLOCKS] === 0) return false
    if (words[chain + L.CHAIN_TYPE] !== type) return false
    const at = (chain + L.CHAIN_REST) * 4
    return type === RRType.NSEC || hasSameNsec3Parameters(parameters, 0, bytes, at)
  }

  /** Returns the node of a relative name; 0 = no such node. */
  #find(entry: ZoneEntry, relative: Uint8Array, apex: HashedName): number {
    const owner = new Uint8Array(relative.length + apex.qnameOctets)
    owner.set(relative)
    owner.set(apex.qname.subarray(0, apex.qnameOctets), relative.length)
    return this.#findOwner(entry, owner)
  }

  #findOwner(entry: ZoneEntry, owner: Uint8Array): number {
    const isName = scratch.set(owner, 0, owner.length)
    return isName ? this.#nodes.find(entry, scratch, 0) : 0
  }

  /** Returns copies of the rdata of an RRset that is not steered. */
  #rdata(set: number): Uint8Array[] {
    const { words, bytes } = this.#nodes.arena
    const count = words[set + L.RRSET_HEAD]! & 0xffff
    const table = count > L.TABLE_FREE_RDATA_MAX ? count : 0
    let at = (set + L.RRSET_REST + table + words[set + L.RRSET_STEERING_COUNT]!) * 4
    return Array.from({ length: count }, () => {
      const start = at + 2
      at = start + ((bytes[at]! << 8) | bytes[at + 1]!)
      return bytes.slice(start, at)
    })
  }
}

const NO_CHAIN: ChainKind = { type: 0, parameters: new Uint8Array(0) }
