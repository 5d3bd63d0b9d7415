import { Random } from '../base/random.ts'
import { RRType } from '../dns/iana/types.ts'
import { lowerNameKey } from '../dnsrecord/validate/names.ts'
import type { Locator } from '../geo/locator.ts'
import { AddressHealth } from '../health/address-health.ts'
import type { OfflineBlock } from '../plugin/directive.ts'
import { ImageSink, type RRsetStore } from '../publish/image-sink.ts'
import { decodeSteering } from '../steering/decode.ts'
import { SteeringTable } from '../steering/table.ts'
import type { Tier } from '../steering/tiers.ts'
import type { RRsetData, ZoneId } from '../zone/image/types.ts'

/** The RRsets of one owner, by type. */
export interface ServedName {
  readonly owner: Uint8Array
  readonly sets: Map<number, RRsetData>
}

/** The tiers of an RRset. */
export interface SetTiers {
  /** Undefined = the location of clients does not matter: one tier. */
  readonly policy: number | undefined
  readonly tiers: readonly Tier[]
}

/**
 * The names of one `kuadrant` block as a server would serve them if all endpoints were up. Built by
 * the code that serves; only the zone image is missing.
 */
export class ServedNames {
  readonly table: SteeringTable
  /** By `lowerNameKey`. SOA records are missing. */
  readonly names: ReadonlyMap<string, ServedName>
  /** Names that exist, also those without RRsets that have names below them. */
  readonly #existing = new Set<string>()
  readonly #tiers = new Map<Uint32Array, SetTiers>()

  private constructor(table: SteeringTable, names: ReadonlyMap<string, ServedName>) {
    this.table = table
    this.names = names
    for (const name of names.keys()) {
      for (let key = name; !this.#existing.has(key); key = parentKey(key)) {
        this.#existing.add(key)
        if (key.length <= 1) break
      }
    }
  }

  /** Builds the names of the zones `apexes` of a block, with the classes of `locator`. Rejects with an InputError. */
  static async build(
    { zones }: OfflineBlock,
    apexes: readonly Uint8Array[],
    locator: Locator | undefined,
  ): Promise<ServedNames> {
    const table = new SteeringTable({
      locator,
      random: new Random(0),
      onError: () => {},
    })
    const names = new Map<string, ServedName>()
    const store = storeIn(names)
    // The state of health is temporary; a comparison is about what is configured.
    const health = new AddressHealth()
    for (const apex of apexes) {
      await zones.fill(apex, new ImageSink(store, NO_ZONE, table), health)
    }
    await table.built()
    table.close()
    return new ServedNames(table, names)
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
    if (own !== undefined || this.#existing.has(key)) return own
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
      return { policy: undefined, tiers: [[{ weight: 1, ttlSeconds, rdataIndexes }]] }
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

function storeIn(names: Map<string, ServedName>): RRsetStore {
  return {
    putRRset: (_, owner, data) => {
      const key = lowerNameKey(owner)
      const known = names.get(key)
      if (known === undefined) names.set(key, { owner, sets: new Map([[data.type, data]]) })
      else known.sets.set(data.type, data)
      return true
    },
    declareName: (_, owner, isDeclared) => {
      const key = lowerNameKey(owner)
      if (isDeclared && !names.has(key)) names.set(key, { owner, sets: new Map() })
      return isDeclared
    },
    removeRRset: (_, owner, type) => names.get(lowerNameKey(owner))?.sets.delete(type) === true,
  }
}

/** Returns the key of the name above; '' for the root. */
function parentKey(key: string): string {
  return key.slice(1 + key.charCodeAt(0))
}
