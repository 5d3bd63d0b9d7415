import { assert } from '../../base/assert.ts'
import { InputError } from '../../base/errors.ts'
import { equalOctets } from '../../base/octets.ts'
import { type HashedName, NameBuffer } from '../../dns/name/hashed-name.ts'
import { ARENA_OCTETS_MAX, Arena } from './arena.ts'
import { ChainStore } from './chain-store.ts'
import { compactArena, type WrittenArena } from './compact.ts'
import { Compaction } from './compaction.ts'
import * as L from './layout.ts'
import { NodeStore, type ZoneEntry } from './node-store.ts'
import { type ArenaHandle, ZoneReader } from './reader.ts'
import type { RecordRun } from './record-run.ts'
import { type Leftover, Replacement } from './replacement.ts'
import { equalsRRset, rrsetWords, writeRRset } from './rrset-block.ts'
import { slotsFor } from './table.ts'
import type { RRsetData, ZoneId } from './types.ts'
import { ZoneTable } from './zone-table.ts'

/** Sizes of a zone image. */
interface ZoneImageOptions {
  /** First size of the arena; default 64 KB. */
  readonly initialOctets?: number
  /** Names that are expected: the index need not grow until there are more. Default: few. */
  readonly names?: number
  /** Address space to reserve: the maximum size of the arena. Default and maximum: 4 GB. */
  readonly maxOctets?: number
  /** An empty arena to use instead of a new one. */
  readonly arena?: Arena | undefined
  /**
   * Less garbage than this never triggers a compaction. With more, half of the arena must also be
   * garbage. Default 16 MB.
   */
  readonly compactOctets?: number
  /** Octets that a compaction copies at each publish, or some more. Default 512 KB: in a millisecond or two. */
  readonly compactStepOctets?: number
}

/** Size and use of an image. */
export interface ZoneImageStats {
  readonly zones: number
  /** Names that exist in the unpublished version, apexes and empty non-terminals included. */
  readonly names: number
  /** Octets that the newest version needs, without the tables. */
  readonly liveOctets: number
  /** Live, garbage, tables and header. */
  readonly usedOctets: number
  readonly garbageOctets: number
  readonly arenaOctets: number
}

/** Larger arenas stay as they are: a copy takes time, and there are few. */
const FIXED_OCTETS_MAX = 1024 * 1024

/** The name of the call that runs. */
const loaded = new NameBuffer()

/** A version of an image as plain data over its shared memory. */
export interface CapturedImage {
  readonly buffer: SharedArrayBuffer
  readonly version: number
  readonly zones: readonly ZoneEntry[]
}

/**
 * The writer of a zone image: zones, their names and RRsets in one shared arena (see layout.ts). An
 * image has one writer. `publish` makes all changes visible to readers at once. Callers validate: a
 * malformed RRset or an owner outside its zone fails an assertion here.
 */
export class ZoneImage {
  /** The handle that readers need to find the arena. */
  readonly handle: ArenaHandle
  readonly #maxOctets: number
  /** Garbage above which a compaction may begin; more after one that failed. */
  #compactWords: number
  readonly #compactStepWords: number
  readonly #listeners = new Set<(buffer: SharedArrayBuffer) => void>()
  #arena: Arena
  #nodes: NodeStore
  #zoneTable: ZoneTable
  #zones = new Map<ZoneId, ZoneEntry>()
  readonly #zoneOfApex = new Map<string, ZoneId>()
  /** Ids of zones that were removed since the last compaction began: the index still contains their nodes. */
  readonly #retired = new Set<ZoneId>()
  /** Those before the present compaction began: its copy does not contain their nodes. */
  #retiredBefore = new Set<ZoneId>()
  #version = 0
  #nextId = 1
  #changed = false
  /** The compaction that takes place. */
  #compaction: Compaction | undefined
  /** Kept, so that adding a name allocates nothing. */
  readonly #sets: number[] = []
  /** During a replacement of all content: which RRsets the caller put again. */
  #replacement: Replacement | undefined

  /** `from`: the initial content of the image; absent = the image is empty. */
  constructor(options: ZoneImageOptions = {}, from?: WrittenArena) {
    this.#maxOctets = options.maxOctets ?? ARENA_OCTETS_MAX
    this.#compactWords = (options.compactOctets ?? 16 * 1024 * 1024) / 4
    this.#compactStepWords = (options.compactStepOctets ?? 512 * 1024) / 4
    const written = from ?? createArena(options, this.#maxOctets)
    this.#arena = written.arena
    this.#nodes = written.nodes
    this.#zoneTable = written.zoneTable
    this.#version = this.#arena.words[L.HEADER_VERSION]!
    this.handle = { buffer: this.#arena.buffer }
    for (const entry of written.zones) {
      this.#zones.set(entry.id, entry)
      this.#zoneOfApex.set(apexKey(this.#loadApex(entry)), entry.id)
    }
  }

  get stats(): ZoneImageStats {
    let names = 0
    let liveWords = 0
    for (const zone of this.#zones.values()) {
      names += zone.names
      liveWords += zone.liveWords
    }
    return {
      zones: this.#zones.size,
      names,
      liveOctets: liveWords * 4,
      usedOctets: this.#arena.tail * 4,
      garbageOctets: this.#nodes.garbageWords * 4,
      arenaOctets: this.#arena.buffer.byteLength,
    }
  }

  /**
   * Adds an empty zone. `apex`: lower-case wire form; no current zone may have it. To replace a
   * zone atomically: remove it, add it, fill it, publish. @throws InputError if the image is full:
   * ZONE_MAX zones, or no space in the arena.
   */
  addZone(apex: Uint8Array): ZoneId {
    const name = this.#load(apex)
    const key = apexKey(name)
    assert(!this.#zoneOfApex.has(key), 'no zone with this apex')
    const id = this.#takeId()
    const version = this.#pending()
    const offset = this.#zoneTable.add(id, name, version)
    const liveWords = this.#arena.tail - offset
    const entry: ZoneEntry = { id, offset, labels: name.labelCount, names: 0, liveWords }
    this.#nodes.reserve(entry, name, 0)
    const node = this.#nodes.ensure(entry, name, 0)
    this.#nodes.appendBody(entry, node, version, L.FLAG_APEX, [])
    this.#arena.words[offset + L.ZONE_APEX_NODE] = node
    this.#zones.set(id, entry)
    this.#zoneOfApex.set(key, id)
    return id
  }

  /** Removes a zone with all its names. */
  removeZone(zone: ZoneId): void {
    const entry = this.#entry(zone)
    this.#arena.words[entry.offset + L.ZONE_DIED] = this.#pending()
    this.#zoneOfApex.delete(apexKey(this.#loadApex(entry)))
    this.#zones.delete(zone)
    this.#retired.add(zone)
    this.#nodes.discard(entry, entry.liveWords)
  }

  /** Returns the zone with this apex, including unpublished changes; undefined if none. */
  findZone(apex: Uint8Array): ZoneId | undefined {
    return this.#zoneOfApex.get(apexKey(this.#load(apex)))
  }

  /**
   * Adds or replaces the RRset of `data.type` at `owner` (lower-case wire form, in the zone).
   * Returns false, and changes nothing, if the zone already has exactly this RRset. @throws
   * InputError if the arena is full; the image is then unchanged.
   */
  putRRset(zone: ZoneId, owner: Uint8Array, data: RRsetData): boolean {
    const entry = this.#entry(zone)
    const name = this.#loadOwner(entry, owner)
    const size = rrsetWords(data)
    const nodes = this.#nodes
    nodes.reserve(entry, name, size)
    const node = nodes.ensure(entry, name, 0)
    const rrsets = nodes.rrsets(node)
    const at = this.#placeOfType(rrsets, data.type)
    const old = rrsets[at]
    const replaces = old !== undefined && nodes.typeOf(old) === data.type
    if (replaces && equalsRRset(this.#arena, old, data, size)) {
      this.#replacement?.keep(old)
      return false
    }
    assert(replaces || rrsets.length < L.RRSETS_MAX, 'at most 255 RRsets per name')
    if (replaces) nodes.discard(entry, this.#arena.words[old + L.RRSET_WORDS]!)
    entry.liveWords += size
    rrsets.splice(at, replaces ? 1 : 0, writeRRset(this.#arena, data, size))
    nodes.setRRsets(entry, name, this.#pending(), node, rrsets)
    return true
  }

  /**
   * Adds a name with all its RRsets, of at most RRSETS_MAX types. `owner`: lower-case wire form in 0..ownerOctets-1, in
   * the zone. Returns false, and changes nothing, if the name has RRsets already. @throws InputError if the arena is
   * full; the image is then unchanged.
   */
  putName(zone: ZoneId, owner: Uint8Array, ownerOctets: number, run: RecordRun): boolean {
    const entry = this.#entry(zone)
    const name = this.#loadOwner(entry, owner, ownerOctets)
    const nodes = this.#nodes
    nodes.reserve(entry, name, run.wordsMax())
    const node = nodes.ensure(entry, name, 0)
    if (nodes.hasRRsets(node)) return false
    const sets = this.#sets
    entry.liveWords += run.write(this.#arena, sets)
    assert(sets.length <= L.RRSETS_MAX, 'at most 255 RRsets per name')
    nodes.setRRsets(entry, name, this.#pending(), node, sets)
    return true
  }

  /**
   * Removes one RRset. A name without RRsets and children ceases to exist. Returns false if the
   * RRset does not exist. @throws InputError if the arena is full: a removal appends a body too;
   * `compact` may free space.
   */
  removeRRset(zone: ZoneId, owner: Uint8Array, type: number): boolean {
    const entry = this.#entry(zone)
    const name = this.#loadOwner(entry, owner)
    const nodes = this.#nodes
    const node = nodes.find(entry, name, 0)
    if (node === 0) return false
    const rrsets = nodes.rrsets(node)
    const at = this.#placeOfType(rrsets, type)
    const old = rrsets[at]
    if (old === undefined || nodes.typeOf(old) !== type) return false
    nodes.reserve(entry, name, 0)
    nodes.discard(entry, this.#arena.words[old + L.RRSET_WORDS]!)
    rrsets.splice(at, 1)
    nodes.setRRsets(entry, name, this.#pending(), node, rrsets)
    return true
  }

  /**
   * Makes a name exist even if it has no RRsets and no children, as an empty non-terminal, or ends
   * that. Returns false if it is so already. @throws InputError if the arena is full.
   */
  declareName(zone: ZoneId, owner: Uint8Array, isDeclared: boolean): boolean {
    const entry = this.#entry(zone)
    const name = this.#loadOwner(entry, owner)
    const nodes = this.#nodes
    nodes.reserve(entry, name, 0)
    const node = isDeclared ? nodes.ensure(entry, name, 0) : nodes.find(entry, name, 0)
    if (node === 0) return false
    if (isDeclared) this.#replacement?.keepDeclared(node)
    const isChanged = nodes.setDeclared(entry, name, this.#version + 1, node, isDeclared)
    if (isChanged) this.#pending()
    return isChanged
  }

  /**
   * Updates the chain of a zone, which proves absence, to its unpublished content; pauses now and
   * then. `changed`: owners of all NSEC and NSEC3 RRsets that were put or removed since the last
   * update of the chain, undefined = any owner. A zone without such records needs no call. @throws
   * InputError if the arena is full.
   */
  *updateChain(zone: ZoneId, changed?: readonly Uint8Array[]): Generator<void, void> {
    const entry = this.#entry(zone)
    const chains = new ChainStore(this.#nodes)
    if (!chains.isNeeded(entry)) return
    const apex = new NameBuffer()
    const { qname, qnameOctets } = this.#loadApex(entry)
    apex.set(qname, 0, qnameOctets)
    const version = this.#version + 1
    const isUpdated = yield* chains.update(entry, apex, changed, version)
    if (isUpdated) this.#pending()
  }

  /**
   * Makes all changes since the last publish visible at once; returns the version that contains
   * them. Then, if `compactOctets` allows it, compacts the arena, or a part of a large one.
   */
  publish(): number {
    if (!this.#changed) return this.#version
    this.#changed = false
    this.#version++
    const { words, tail } = this.#arena
    const publishedWords = tail - words[L.HEADER_TAIL]!
    words[L.HEADER_TAIL] = tail
    Atomics.store(words, L.HEADER_VERSION, this.#version)
    if (this.#replacement === undefined) this.#compactSome(publishedWords)
    return this.#version
  }

  /**
   * Continues a compaction; returns true at its end. Call it now and then while nothing changes: until then, the image
   * has two arenas.
   */
  compactIdle(): boolean {
    const canCompact = !this.#changed && this.#replacement === undefined
    if (this.#compaction === undefined || !canCompact) return false
    const { buffer } = this.handle
    this.#compactSome(0)
    return this.handle.buffer !== buffer
  }

  #compactSome(publishedWords: number): void {
    const { garbageWords } = this.#nodes
    const isWorthIt = garbageWords > this.#compactWords && garbageWords * 2 > this.#arena.tail
    if (this.#compaction === undefined && !isWorthIt) return
    try {
      this.#compactOn((compaction) => compaction.step(publishedWords))
    } catch (error) {
      if (!(error instanceof InputError)) throw error
      // Memory is short. The image needs no compaction to continue.
      this.#compactWords = garbageWords * 2
    }
  }

  /** Continues the compaction, or begins one. @throws InputError if memory is short: it is then given up. */
  #compactOn(run: (compaction: Compaction) => WrittenArena | undefined): void {
    try {
      this.#compaction ??= this.#beginCompaction()
      const copy = run(this.#compaction)
      if (copy !== undefined) this.#swap(copy)
    } catch (error) {
      this.#compaction = undefined
      this.#nodes.changed = undefined
      throw error
    }
  }

  #beginCompaction(): Compaction {
    this.#retiredBefore = new Set(this.#retired)
    return new Compaction({
      reader: this.reader(),
      nodes: this.#nodes,
      zones: this.#zones,
      maxOctets: this.#maxOctets,
      stepWords: this.#compactStepWords,
    })
  }

  /**
   * Copies the published version into a new arena and replaces the old arena with it. Readers of
   * this thread see it at their next refresh; other readers when their handle receives the new
   * buffer (see `onSwap`). Readers of the old arena can continue. All changes must be published. @throws InputError if
   * memory is short.
   */
  compact(): void {
    assert(!this.#changed, 'all is published before compacting')
    assert(this.#replacement === undefined, 'nothing is being replaced')
    this.#compaction = undefined
    this.#compactOn((compaction) => compaction.finish())
  }

  #swap({ arena, nodes, zoneTable, zones }: WrittenArena): void {
    this.#compaction = undefined
    this.#arena = arena
    this.#nodes = nodes
    this.#zoneTable = zoneTable
    this.#zones = new Map(zones.map((zone) => [zone.id, zone]))
    for (const id of this.#retiredBefore) this.#retired.delete(id)
    this.handle.buffer = arena.buffer
    for (const listener of this.#listeners) listener(arena.buffer)
  }

  /** Returns another image with the published version, for a writer of its own. All changes must be published. */
  copy(): ZoneImage {
    assert(!this.#changed, 'all is published before copying')
    const zones = [...this.#zones.values()]
    return new ZoneImage({}, compactArena(this.reader(), zones, this.#version, this.#maxOctets))
  }

  /** Calls `listener` with the new buffer after each swap, until the returned function is called. */
  onSwap(listener: (buffer: SharedArrayBuffer) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /**
   * Starts a replacement: the caller puts all content again, and the rest is left over. All changes
   * must be published. The image does not compact until `endReplacing`.
   */
  beginReplacing(): void {
    assert(!this.#changed, 'all is published')
    this.#replacement = new Replacement(this.#arena.tail)
  }

  /**
   * Returns what was not put again since `beginReplacing`. The time is proportional to
   * the size of the image.
   */
  endReplacing(): Leftover[] {
    const replacement = this.#replacement
    this.#replacement = undefined
    return replacement?.leftovers(this.#arena, [...this.#zones.values()]) ?? []
  }

  /** Newest published version; 0 = none. */
  get version(): number {
    return this.#version
  }

  /** True if readers see all changes. */
  get isPublished(): boolean {
    return !this.#changed
  }

  /**
   * Returns the published version for readers of an image that will not change: a small one in memory of its own size
   * (see `Arena.copyFixed`), a larger one in place. All changes must be published.
   */
  finish(): SharedArrayBuffer {
    assert(!this.#changed, 'all is published')
    return this.#arena.tail * 4 < FIXED_OCTETS_MAX ? this.#arena.copyFixed() : this.#arena.buffer
  }

  /** Returns the data from which any thread can copy the published version. All changes must be published. */
  capture(): CapturedImage {
    assert(!this.#changed, 'all is published')
    const zones = [...this.#zones.values()].map((zone) => ({ ...zone }))
    return { buffer: this.#arena.buffer, version: this.#version, zones }
  }

  /** A reader for this thread. */
  reader(): ZoneReader {
    return new ZoneReader(this.handle)
  }

  #pending(): number {
    assert(this.#version < 0xfffffffe, 'version has 32 bits')
    this.#changed = true
    return this.#version + 1
  }

  #load(bytes: Uint8Array, octets: number = bytes.length): HashedName {
    const ok = loaded.set(bytes, 0, octets)
    assert(ok, 'a wire name')
    assert(loaded.qnameOctets === octets, 'nothing behind the name')
    return loaded
  }

  #loadApex(entry: ZoneEntry): HashedName {
    const { words, bytes } = this.#arena
    const at = (entry.offset + L.ZONE_APEX) * 4
    const octets = words[entry.offset + L.ZONE_APEX_SIZE]! & 0xffff
    return this.#load(bytes.subarray(at, at + octets))
  }

  #loadOwner(entry: ZoneEntry, owner: Uint8Array, ownerOctets: number = owner.length): HashedName {
    const name = this.#load(owner, ownerOctets)
    const { words, bytes } = this.#arena
    const label = name.labelCount - entry.labels
    assert(label >= 0, 'owner is in the zone')
    const start = name.labelOffset[label]!
    const octets = words[entry.offset + L.ZONE_APEX_SIZE]! & 0xffff
    const at = (entry.offset + L.ZONE_APEX) * 4
    assert(name.qnameOctets - start === octets, 'owner ends with the apex')
    assert(equalOctets(name.qname, start, bytes, at, octets), 'owner ends with the apex')
    return name
  }

  #entry(zone: ZoneId): ZoneEntry {
    const entry = this.#zones.get(zone)
    assert(entry !== undefined, 'zone is in the image')
    return entry
  }

  /** Returns the index of the RRset of `type` in a list ordered by type, or the index where it belongs. */
  #placeOfType(rrsets: readonly number[], type: number): number {
    let at = 0
    while (at < rrsets.length && this.#nodes.typeOf(rrsets[at]!) < type) at++
    return at
  }

  #takeId(): ZoneId {
    const canCompact = !this.#changed && this.#replacement === undefined
    if (this.#zones.size + this.#retired.size >= L.ZONE_MAX && canCompact) this.compact()
    if (this.#zones.size + this.#retired.size >= L.ZONE_MAX) {
      throw new InputError(
        undefined,
        `more than ${L.ZONE_MAX} zones in one server block; spread them over several blocks`,
      )
    }
    while (this.#zones.has(this.#nextId) || this.#retired.has(this.#nextId)) {
      this.#nextId = (this.#nextId % L.ZONE_MAX) + 1
    }
    return this.#nextId
  }
}

function createArena(options: ZoneImageOptions, maxOctets: number): WrittenArena {
  const arena = options.arena ?? new Arena(options.initialOctets ?? 65536, maxOctets)
  const nodes = NodeStore.create(arena, slotsFor(options.names ?? 0))
  return { arena, nodes, zoneTable: ZoneTable.create(arena, slotsFor(0)), zones: [] }
}

/** Key of a zone in a Map. */
function apexKey(apex: HashedName): string {
  return Buffer.from(apex.qname.subarray(0, apex.qnameOctets)).toString('latin1')
}
