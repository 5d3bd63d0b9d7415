import type { Clock } from '../base/clock.ts'
import { Random } from '../base/random.ts'
import { runInSlices } from '../base/slices.ts'
import { RRType } from '../dns/iana/types.ts'
import type { Locator } from '../geo/locator.ts'
import type { RecordZone } from '../publish/build/record-zone.ts'
import type { OfflineBlock } from '../publish/offline/offline-block.ts'
import type { ZonePreview } from '../publish/preview/zone-preview.ts'
import { ImageSink, type RRsetStore } from '../publish/zone/image-sink.ts'
import { lowerNameKey } from '../records/validate/names.ts'
import { decodeSteering } from '../steering/decode.ts'
import { SteeringTable } from '../steering/table.ts'
import type { Tier } from '../steering/tiers.ts'
import type { RRsetData, ZoneId } from '../zone/image/types.ts'

/** The RRsets of one owner, by type. Replaced as a whole when one changes. */
export interface ServedName {
  readonly owner: Uint8Array
  readonly sets: ReadonlyMap<number, RRsetData>
  /** True: the name exists without RRsets too. */
  readonly isDeclared: boolean
}

/** The tiers of an RRset. */
export interface SetTiers {
  /** Undefined = the location of clients does not matter: one tier. */
  readonly policy: number | undefined
  readonly tiers: readonly Tier[]
  /** By tier: number of outcomes that a client gets. */
  readonly answers: readonly number[]
}

/** A block whose names are compared. */
export type ComparedBlock = Pick<OfflineBlock, 'block' | 'zones'>

/** The zones of one block to build names of. */
interface NamesRequest {
  readonly block: ComparedBlock
  readonly apexes: readonly Uint8Array[]
  /** Its classes are those of the names. */
  readonly locator: Locator | undefined
}

type Names = Map<string, ServedName>

/**
 * The names of one `kuadrant` block as a server would serve them if all endpoints were up. Built by
 * the code that serves; only the zone image is missing.
 */
export class ServedNames {
  readonly table: SteeringTable
  /** By `lowerNameKey`. SOA records are missing. */
  readonly names: ReadonlyMap<string, ServedName>
  #existing: ReadonlySet<string> | undefined
  readonly #tiers = new Map<Uint32Array, SetTiers>()

  private constructor(table: SteeringTable, names: ReadonlyMap<string, ServedName>) {
    this.table = table
    this.names = names
  }

  /** Builds the names of the zones of a block. Rejects with an InputError. */
  static async build(request: NamesRequest): Promise<ServedNames> {
    const [names] = await ServedNames.#build(request, undefined)
    return names
  }

  /**
   * Builds the names of a block before and after an edit of its records. The two have one table, and
   * one object for each name that the edit leaves alone. `after`: the block with other records and
   * the same options. Rejects with an InputError.
   */
  static buildEdit(
    request: NamesRequest,
    after: ComparedBlock,
  ): Promise<readonly [before: ServedNames, after: ServedNames]> {
    return ServedNames.#build(request, after)
  }

  static async #build(
    { block: { zones }, apexes, locator }: NamesRequest,
    after: ComparedBlock | undefined,
  ): Promise<readonly [before: ServedNames, after: ServedNames]> {
    const table = new SteeringTable({ locator, random: new Random(0), onError: () => {} })
    table.gather()
    const names: Names = new Map()
    const store = storeIn(names)
    const health = zones.configuredHealth
    const filled = new Map<Uint8Array, RecordZone>()
    for (const apex of apexes) {
      filled.set(apex, await zones.fill(apex, new ImageSink(store, NO_ZONE, table), health))
    }
    const before = new ServedNames(table, after === undefined ? names : new Map(names))
    await after?.zones.edit(filled, zones)
    await table.built()
    table.close()
    return [before, new ServedNames(table, names)]
  }

  /**
   * Builds the names that a change of running zones concerns, before and after it, in slices. `preview`: its records
   * have been found. Rejects with an InputError.
   */
  static async buildPreview(
    preview: ZonePreview,
    locator: Locator | undefined,
    clock: Clock,
  ): Promise<readonly [before: ServedNames, after: ServedNames]> {
    const table = new SteeringTable({ locator, random: new Random(0), onError: () => {} })
    table.gather()
    const names: Names = new Map()
    const sink = new ImageSink(storeIn(names), NO_ZONE, table)
    await runInSlices(
      preview.fill(() => sink),
      clock,
    )
    const before = new ServedNames(table, new Map(names))
    await runInSlices(preview.apply(), clock)
    await table.built()
    table.close()
    return [before, new ServedNames(table, names)]
  }

  /** The names of a block that does not exist. */
  static empty(): ServedNames {
    const options = { locator: undefined, random: new Random(0), onError: () => {} }
    return new ServedNames(new SteeringTable(options), new Map())
  }

  /**
   * Returns the RRsets that answer for a name: its own, or those of the wildcard that covers it (RFC
   * 4592 section 3.3.1). Undefined = no RRset does.
   */
  find(key: string): ServedName | undefined {
    const own = this.names.get(key)
    if (own !== undefined) return own
    this.#existing ??= withAncestors(this.names.keys())
    if (this.#existing.has(key)) return undefined
    for (let encloser = parentKey(key); encloser !== ''; encloser = parentKey(encloser)) {
      if (this.#existing.has(encloser)) return this.names.get(WILDCARD + encloser)
    }
    return undefined
  }

  /** Returns the tiers of an RRset of these names. */
  tiersOf({ type, ttlSeconds, rdata, steering }: RRsetData): SetTiers {
    if (steering === undefined) {
      const all = rdata.map((_, i) => i)
      const rdataIndexes = type === RRType.CNAME ? all.slice(0, 1) : all
      const tiers = [[{ weight: 1, ttlSeconds, rdataIndexes }]]
      return { policy: undefined, tiers, answers: [1] }
    }
    const known = this.#tiers.get(steering)
    if (known !== undefined) return known
    const decoded = decodeSteering(steering, 0)
    this.#tiers.set(steering, decoded)
    return decoded
  }

  /** Returns the tier that serves clients of a class. */
  tierOf(policy: number | undefined, clientClass: number): number {
    if (policy === undefined) return 0
    const { tierOf, trie } = this.table.snapshot
    return tierOf[policy * trie.classCount + clientClass]!
  }
}

const WILDCARD = '\u0001*'
const NO_ZONE = 0 as ZoneId
const NO_SETS: ReadonlyMap<number, RRsetData> = new Map()

function storeIn(names: Names): RRsetStore {
  const put = (owner: Uint8Array, change: (name: ServedName) => Partial<ServedName>): void => {
    const key = lowerNameKey(owner)
    const known = names.get(key) ?? { owner, sets: NO_SETS, isDeclared: false }
    const next = { ...known, ...change(known) }
    if (next.sets.size > 0 || next.isDeclared) names.set(key, next)
    else names.delete(key)
  }
  return {
    putRRset: (_, owner, data) => {
      put(owner, ({ sets }) => ({ sets: new Map([...sets, [data.type, data]]) }))
      return true
    },
    declareName: (_, owner, isDeclared) => {
      put(owner, () => ({ isDeclared }))
      return isDeclared
    },
    removeRRset: (_, owner, type) => {
      put(owner, ({ sets }) => ({ sets: new Map([...sets].filter(([other]) => other !== type)) }))
      return true
    },
  }
}

/** Returns the names that exist: also those without RRsets that have names below them. */
function withAncestors(names: Iterable<string>): Set<string> {
  const existing = new Set<string>()
  for (const name of names) {
    for (let key = name; !existing.has(key); key = parentKey(key)) {
      existing.add(key)
      if (key.length <= 1) break
    }
  }
  return existing
}

/** Returns the key of the name above; '' for the root. */
function parentKey(key: string): string {
  return key.slice(1 + key.charCodeAt(0))
}
