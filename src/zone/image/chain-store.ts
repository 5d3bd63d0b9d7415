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
import * as L from './layout.ts'
import type { NodeStore, ZoneEntry } from './node-store.ts'

/** The name that is searched. */
const scratch = new NameBuffer()

/** Nodes between two pauses. */
const SLICE_NODES = 1024

/** The kind of a zone's denial of existence: NSEC, or NSEC3 with its parameters. */
interface ChainKind {
  readonly type: number
  /** NSEC3PARAM rdata; empty for NSEC. */
  readonly parameters: Uint8Array
}

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
   * Rewrites the chain of a zone if its unpublished content requires it; pauses now and then.
   * `changed`: owners of the NSEC and NSEC3 RRsets that changed since the last chain, undefined =
   * any owner. `version`: the version of the next publish. Returns true if it wrote something.
   * @throws InputError if the arena is full.
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
    if (kind === undefined) {
      const hasEnded = old !== 0 && words[old + L.CHAIN_COUNT] !== 0
      if (hasEnded) this.#append(entry, NO_CHAIN, new Uint32Array(0), version)
      return hasEnded
    }
    const isSameKind = changed !== undefined && this.#isOfKind(old, kind)
    if (isSameKind && changed.length === 0) return false
    const nodes = isSameKind
      ? yield* this.#merged(entry, kind, old, changed)
      : yield* this.#collected(entry, kind)
    this.#append(entry, kind, nodes, version)
    return true
  }

  /** Copies a chain of another arena. The caller has copied the chain's nodes to this arena. */
  copy(
    entry: ZoneEntry,
    apex: HashedName,
    from: { readonly words: Uint32Array; readonly bytes: Uint8Array },
    chain: number,
    version: number,
  ): void {
    const { words, bytes } = from
    const parameterWords = words[chain + L.CHAIN_PARAMETER_WORDS]!
    const at = chain + L.CHAIN_REST
    const octets = parameterWords === 0 ? 0 : 5 + bytes[at * 4 + 4]!
    const parameters = bytes.slice(at * 4, at * 4 + octets)
    const nodes = new Uint32Array(words[chain + L.CHAIN_COUNT]!)
    for (let i = 0; i < nodes.length; i++) {
      const node = words[at + parameterWords + i]!
      const nameAt = (node + L.NODE_NAME) * 4
      const relative = bytes.subarray(nameAt, nameAt + (words[node + L.NODE_KEY]! & 0xffff))
      nodes[i] = this.#find(entry, relative, apex)
    }
    this.#append(entry, { type: words[chain + L.CHAIN_TYPE]!, parameters }, nodes, version)
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

  *#collected(entry: ZoneEntry, kind: ChainKind): Generator<void, Uint32Array> {
    const { words, bytes } = this.#nodes.arena
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
    yield* sortInSlices(nodes, (a, b) => {
      this.#order.setNode(words, bytes, a)
      return this.#order.compare(words, bytes, b)
    })
    return nodes
  }

  /** Returns the nodes of the chain `old`, without nodes that left it and with nodes that joined it. */
  *#merged(
    entry: ZoneEntry,
    kind: ChainKind,
    old: number,
    changed: readonly Uint8Array[],
  ): Generator<void, Uint32Array> {
    const { words, bytes } = this.#nodes.arena
    const owners = changed.map((owner) => this.#findOwner(entry, owner))
    const touched = Uint32Array.from(owners.filter((node) => node !== 0))
    yield* sortInSlices(touched, (a, b) => {
      this.#order.setNode(words, bytes, a)
      return this.#order.compare(words, bytes, b)
    })
    const start = old + L.CHAIN_REST + words[old + L.CHAIN_PARAMETER_WORDS]!
    const end = start + words[old + L.CHAIN_COUNT]!
    const merged = new Uint32Array(end - start + touched.length)
    let count = 0
    let from = start
    for (const [i, node] of touched.entries()) {
      if (node === touched[i - 1]) continue
      this.#order.setNode(words, bytes, node)
      const at = this.#place(from, end)
      merged.set(words.subarray(from, at), count)
      count += at - from
      from = at < end && words[at] === node ? at + 1 : at
      if (this.#isIn(node, kind)) merged[count++] = node
      if (i % SLICE_NODES === SLICE_NODES - 1) yield
    }
    merged.set(words.subarray(from, end), count)
    return merged.subarray(0, count + end - from)
  }

  /** Returns the index of the current name in the sorted nodes from..end-1, or the index where it belongs. */
  #place(from: number, end: number): number {
    const { words, bytes } = this.#nodes.arena
    let low = from
    let high = end
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#order.compare(words, bytes, words[middle]!) > 0) low = middle + 1
      else high = middle
    }
    return low
  }

  #isOfKind(chain: number, { type, parameters }: ChainKind): boolean {
    const { words, bytes } = this.#nodes.arena
    if (chain === 0 || words[chain + L.CHAIN_COUNT] === 0) return false
    if (words[chain + L.CHAIN_TYPE] !== type) return false
    const at = (chain + L.CHAIN_REST) * 4
    return type === RRType.NSEC || hasSameNsec3Parameters(parameters, 0, bytes, at)
  }

  #append(entry: ZoneEntry, kind: ChainKind, nodes: Uint32Array, version: number): void {
    const { arena } = this.#nodes
    const parameterWords = Math.ceil(kind.parameters.length / 4)
    const chainWords = L.CHAIN_REST + parameterWords + nodes.length
    const chain = arena.allocate(chainWords)
    const { words, bytes } = arena
    const old = words[entry.offset + L.ZONE_CHAIN]!
    words[chain + L.CHAIN_VERSION] = version
    words[chain + L.CHAIN_PREVIOUS] =
      old !== 0 && words[old + L.CHAIN_VERSION] === version ? words[old + L.CHAIN_PREVIOUS]! : old
    words[chain + L.CHAIN_TYPE] = kind.type
    words[chain + L.CHAIN_COUNT] = nodes.length
    words[chain + L.CHAIN_PARAMETER_WORDS] = parameterWords
    bytes.set(kind.parameters, (chain + L.CHAIN_REST) * 4)
    words.set(nodes, chain + L.CHAIN_REST + parameterWords)
    if (old !== 0) this.#nodes.discard(entry, chainWordsOf(words, old))
    entry.liveWords += chainWords
    Atomics.store(words, entry.offset + L.ZONE_CHAIN, chain)
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

function chainWordsOf(words: Uint32Array, chain: number): number {
  return L.CHAIN_REST + words[chain + L.CHAIN_PARAMETER_WORDS]! + words[chain + L.CHAIN_COUNT]!
}
