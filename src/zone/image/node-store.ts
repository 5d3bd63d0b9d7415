import { equalOctets } from '../../base/octets.ts'
import { RRType } from '../../dns/iana/types.ts'
import type { HashedName } from '../../dns/name/hashed-name.ts'
import type { Arena } from './arena.ts'
import * as L from './layout.ts'
import { createTable, doubleTable, insertSlot, tableWords } from './table.ts'
import type { ZoneId } from './types.ts'

/** The writer's data about one zone. */
export interface ZoneEntry {
  readonly id: ZoneId
  /** Offset of the zone's block. */
  readonly offset: number
  /** Labels of the apex. */
  readonly labels: number
  /** Names that exist in the unpublished version, the apex included. */
  names: number
  /** Words that the newest version of this zone occupies. */
  liveWords: number
}

/** Writes the nodes of an arena: finds, adds and changes nodes and their ancestors. */
export class NodeStore {
  readonly arena: Arena
  /** Offset of the node index. */
  index: number
  /** Nodes in the index, including nodes of names that no longer exist. */
  count: number
  /** Words of the arena that neither the newest version nor any later one uses. */
  garbageWords = 0
  /** Gets the nodes whose content changes; undefined = they are not needed. */
  changed: Set<number> | undefined = undefined

  /** Uses an arena that already has an index with `count` nodes. */
  constructor(arena: Arena, count: number) {
    this.arena = arena
    this.index = arena.words[L.HEADER_INDEX]!
    this.count = count
  }

  /** Creates the node index of a new arena. `slots`: a power of two, at least twice the expected number of names. */
  static create(arena: Arena, slots: number): NodeStore {
    Atomics.store(arena.words, L.HEADER_INDEX, createTable(arena, slots))
    return new NodeStore(arena, 0)
  }

  /**
   * Reserves space to change one name with all its ancestors, and `words` more, so that the change
   * itself cannot fail. @throws InputError if the arena is full.
   */
  reserve(entry: ZoneEntry, name: HashedName, words: number): void {
    const levels = name.labelCount - entry.labels + 1
    this.reserveIndex(levels)
    const level = L.NODE_NAME + 64 + L.BODY_RRSETS + L.RRSETS_MAX
    this.arena.reserve(words + levels * level)
  }

  /** Makes space in the index for `nodes` more nodes. @throws InputError if the arena is full. */
  reserveIndex(nodes: number): void {
    for (;;) {
      const slots = this.arena.words[this.index + L.TABLE_MASK]! + 1
      if ((this.count + nodes) * 2 <= slots) return
      this.index = doubleTable(this.arena, this.index)
      this.garbageWords += tableWords(slots)
      Atomics.store(this.arena.words, L.HEADER_INDEX, this.index)
    }
  }

  /** Returns the node of `name` from `label` on, or 0. */
  find(entry: ZoneEntry, name: HashedName, label: number): number {
    const zoneLabel = name.labelCount - entry.labels
    const start = name.labelOffset[label]!
    const octets = name.labelOffset[zoneLabel]! - start
    const hash = L.nodeHash(name.suffixHash[label]!, entry.id)
    return this.findRelative(hash, entry.id, name.qname, start, octets)
  }

  /** Returns the node of a name by its finished hash, zone, and relative name at `name[start]`; 0 = none. */
  findRelative(
    hash: number,
    zone: ZoneId,
    name: Uint8Array,
    start: number,
    octets: number,
  ): number {
    const { words, bytes } = this.arena
    const key = ((zone << 16) | octets) >>> 0
    const mask = words[this.index + L.TABLE_MASK]!
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const at = this.index + L.TABLE_SLOTS + slot * L.SLOT_WORDS
      const node = words[at + 1]!
      if (node === 0) return 0
      if (words[at] !== hash || words[node + L.NODE_KEY] !== key) continue
      if (equalOctets(bytes, (node + L.NODE_NAME) * 4, name, start, octets)) return node
    }
  }

  /** Returns the node as `find` does; if no node exists, adds one for a name that does not exist yet. */
  ensure(entry: ZoneEntry, name: HashedName, label: number): number {
    const found = this.find(entry, name, label)
    if (found !== 0) return found
    const start = name.labelOffset[label]!
    const octets = name.labelOffset[name.labelCount - entry.labels]! - start
    const node = this.append(entry, octets)
    const at = (node + L.NODE_NAME) * 4
    for (let i = 0; i < octets; i++) this.arena.bytes[at + i] = name.qname[start + i]!
    this.enter(node, L.nodeHash(name.suffixHash[label]!, entry.id))
    return node
  }

  /** Appends a node without a body; the caller writes the `octets` of its relative name. */
  append(entry: ZoneEntry, octets: number): number {
    const node = this.arena.allocate(L.NODE_NAME + Math.ceil(octets / 4))
    const words = this.arena.words
    words[node + L.NODE_KEY] = (entry.id << 16) | octets
    words[node + L.NODE_NEXT] = words[entry.offset + L.ZONE_NEWEST_NODE]!
    Atomics.store(words, entry.offset + L.ZONE_NEWEST_NODE, node)
    return node
  }

  /** Inserts a node into the index, which must have space. */
  enter(node: number, hash: number): void {
    insertSlot(this.arena.words, this.index, hash, node)
    this.count++
  }

  /** Returns the offset of a node's RRset of one type in the newest version; 0 = none. */
  findRRset(node: number, type: number): number {
    const words = this.arena.words
    const body = words[node + L.NODE_BODY]!
    if (body === 0) return 0
    const end = body + L.BODY_RRSETS + (words[body + L.BODY_STATE]! >>> L.BODY_COUNT_SHIFT)
    for (let i = body + L.BODY_RRSETS; i < end; i++) {
      if (this.typeOf(words[i]!) === type) return words[i]!
    }
    return 0
  }

  /** Returns the offsets of a node's RRsets in the newest version, ordered by type. */
  rrsets(node: number): number[] {
    const words = this.arena.words
    const body = words[node + L.NODE_BODY]!
    if (body === 0) return []
    const count = words[body + L.BODY_STATE]! >>> L.BODY_COUNT_SHIFT
    return [...words.subarray(body + L.BODY_RRSETS, body + L.BODY_RRSETS + count)]
  }

  /** True if a node has RRsets in the newest version. */
  hasRRsets(node: number): boolean {
    const words = this.arena.words
    const body = words[node + L.NODE_BODY]!
    return body !== 0 && words[body + L.BODY_STATE]! >>> L.BODY_COUNT_SHIFT !== 0
  }

  typeOf(rrset: number): number {
    return this.arena.words[rrset + L.RRSET_HEAD]! >>> 16
  }

  /**
   * Sets the RRsets of the node of `name` from `label` on, as of `version`, and updates its
   * ancestors. A name that appears can make its parent an empty non-terminal; a name that
   * disappears can remove that parent. `flags`: the new lasting flags of the node; default: its
   * present ones.
   */
  setRRsets(
    entry: ZoneEntry,
    name: HashedName,
    version: number,
    node: number,
    rrsets: readonly number[],
    flags: number = this.#keptFlags(node),
  ): void {
    const zoneLabel = name.labelCount - entry.labels
    for (let label = 0; ; ) {
      const change = this.appendBody(entry, node, version, flags, rrsets)
      if (change === 0 || label === zoneLabel) return
      const wildcard =
        name.qname[name.labelOffset[label]!] === 1 &&
        name.qname[name.labelOffset[label]! + 1] === 0x2a
      label++
      node = this.ensure(entry, name, label)
      const before = this.#keptFlags(node)
      const children = (this.arena.words[node + L.NODE_CHILDREN]! += change)
      this.changed?.add(node)
      flags = before & (wildcard ? ~L.FLAG_WILDCARD : ~0) & ~L.FLAG_CHILDREN
      if (children > 0) flags |= L.FLAG_CHILDREN
      if (wildcard && change > 0) flags |= L.FLAG_WILDCARD
      if (flags === before) return
      rrsets = this.rrsets(node)
    }
  }

  /** Declares the node of `name`, or ends that, as of `version`; returns false if it is so already. */
  setDeclared(
    entry: ZoneEntry,
    name: HashedName,
    version: number,
    node: number,
    isDeclared: boolean,
  ): boolean {
    const before = this.#keptFlags(node)
    const flags = isDeclared ? before | L.FLAG_DECLARED : before & ~L.FLAG_DECLARED
    if (flags === before) return false
    this.setRRsets(entry, name, version, node, this.rrsets(node), flags)
    return true
  }

  /** Appends a body. Returns 1 if the name starts to exist, -1 if it ceases to exist, else 0. */
  appendBody(
    entry: ZoneEntry,
    node: number,
    version: number,
    keptFlags: number,
    rrsets: readonly number[],
  ): number {
    const body = this.arena.allocate(L.BODY_RRSETS + rrsets.length)
    const words = this.arena.words
    const old = words[node + L.NODE_BODY]!
    const state =
      (rrsets.length << L.BODY_COUNT_SHIFT) | keptFlags | this.#typeFlags(keptFlags, rrsets)
    words[body + L.BODY_VERSION] = version
    // No reader saw a body of this unpublished version: link to the one before it.
    words[body + L.BODY_PREVIOUS] =
      old !== 0 && words[old + L.BODY_VERSION] === version ? words[old + L.BODY_PREVIOUS]! : old
    words[body + L.BODY_STATE] = state
    for (let i = 0; i < rrsets.length; i++) words[body + L.BODY_RRSETS + i] = rrsets[i]!
    if ((state & (L.FLAG_CUT | L.FLAG_DNAME)) !== 0) words[entry.offset + L.ZONE_DELEGATES] = 1
    Atomics.store(words, node + L.NODE_BODY, body)
    this.changed?.add(node)
    return this.#account(entry, node, old, body)
  }

  /** Counts words of the zone's newest version as garbage. */
  discard(entry: ZoneEntry, words: number): void {
    entry.liveWords -= words
    this.garbageWords += words
  }

  #account(entry: ZoneEntry, node: number, old: number, body: number): number {
    const words = this.arena.words
    const nodeWords = L.NODE_NAME + Math.ceil((words[node + L.NODE_KEY]! & 0xffff) / 4)
    const existed = old !== 0 && words[old + L.BODY_STATE] !== 0
    const exists = words[body + L.BODY_STATE] !== 0
    if (existed) this.discard(entry, this.#bodyWords(old))
    entry.liveWords += this.#bodyWords(body)
    if (!exists) this.discard(entry, this.#bodyWords(body))
    if (existed === exists) return 0
    if (!exists) this.discard(entry, nodeWords)
    else if (old !== 0) this.discard(entry, -nodeWords)
    else entry.liveWords += nodeWords
    entry.names += exists ? 1 : -1
    return exists ? 1 : -1
  }

  #bodyWords(body: number): number {
    return L.BODY_RRSETS + (this.arena.words[body + L.BODY_STATE]! >>> L.BODY_COUNT_SHIFT)
  }

  #keptFlags(node: number): number {
    const words = this.arena.words
    const body = words[node + L.NODE_BODY]!
    return body === 0 ? 0 : words[body + L.BODY_STATE]! & L.LASTING_FLAGS
  }

  #typeFlags(keptFlags: number, rrsets: readonly number[]): number {
    let flags = 0
    let hasNsec3 = false
    let isHashed = keptFlags === 0
    for (const rrset of rrsets) {
      const type = this.typeOf(rrset)
      if (type === RRType.DNAME) flags |= L.FLAG_DNAME
      if (type === RRType.NS && (keptFlags & L.FLAG_APEX) === 0) flags |= L.FLAG_CUT
      if (type === RRType.RRSIG) flags |= L.FLAG_SIGNED
      else if (type === RRType.NSEC3) hasNsec3 = true
      else isHashed = false
    }
    return hasNsec3 && isHashed ? flags | L.FLAG_HASHED : flags
  }
}
