import { scanCidr } from '../../dns/text/address.ts'
import { CONTINENTS } from '../../geo/countries.ts'
import type { NetClasses } from '../net-classes.ts'
import { hashAt, textAt, textsOf, type Vscf, type VscfHash } from './vscf.ts'

/** Datacenters in order of preference; `auto` = by distance. */
type Preference = readonly string[] | 'auto'

/** A map of the plugin geoip. */
export interface GeoMap {
  readonly datacenters: readonly string[]
  readonly byDefault: Preference
  /** By geo code. */
  readonly codes: ReadonlyMap<string, Preference>
  /** The lists of `nets`. */
  readonly netLists: readonly (readonly string[])[]
  /** `52.52,13.40`, by datacenter. */
  readonly locations: ReadonlyMap<string, string>
}

type Note = (line: number, message: string) => void

const AUTO = 'auto'
/** The key of a list in `NetClasses`. */
export function keyOfList(list: readonly string[]): string {
  return list.join(' ')
}

/** Reads a map. `nets`: receives its networks. */
export function readGeoMap(
  name: string,
  map: VscfHash,
  { nets, file, note }: { readonly nets: NetClasses; readonly file: string; readonly note: Note },
): GeoMap {
  const datacenters = textsOf(map.entries.get('datacenters'))
  const locations = new Map<string, string>()
  for (const [datacenter, value] of hashAt(map, 'auto_dc_coords')?.entries ?? []) {
    locations.set(datacenter, textsOf(value).join(','))
  }
  const codes = new Map<string, Preference>()
  const places = hashAt(map, 'map')
  if (places !== undefined) new Places(codes, note).continents(places)
  const own = places?.entries.get('default')
  const byDefault =
    own === undefined ? (locations.size > 0 ? AUTO : datacenters) : preferenceOf(own)
  if (textAt(map, 'ignore_ecs') === 'true')
    note(map.line, `ignore_ecs of map ${name} has no equivalent`)
  const netLists = readNets(name, map, { nets, file, note })
  return { datacenters, byDefault, codes, netLists, locations }
}

function readNets(
  name: string,
  map: VscfHash,
  { nets, file, note }: { readonly nets: NetClasses; readonly file: string; readonly note: Note },
): readonly (readonly string[])[] {
  const value = map.entries.get('nets')
  if (value === undefined) return []
  if (value.kind !== 'hash') {
    note(value.line, `nets of map ${name} are in a file of their own: write them into the map`)
    return []
  }
  const lists = new Map<string, readonly string[]>()
  for (const [text, entry] of value.entries) {
    const cidr = scanCidr(text)
    const list = textsOf(entry)
    if (cidr === undefined) note(entry.line, `${JSON.stringify(text)} is not a network`)
    else {
      nets.define(name, cidr, keyOfList(list), `${file}:${entry.line}`)
      lists.set(keyOfList(list), list)
    }
  }
  return [...lists.values()]
}

function preferenceOf(value: Vscf): Preference {
  return value.kind === 'scalar' && value.text === AUTO ? AUTO : textsOf(value)
}

/** Reads the levels of `map`: continent, country, subdivisions, city. */
class Places {
  readonly #codes: Map<string, Preference>
  readonly #note: Note

  constructor(codes: Map<string, Preference>, note: Note) {
    this.#codes = codes
    this.#note = note
  }

  continents(hash: VscfHash): void {
    for (const [key, value] of this.#below(hash)) {
      if (!CONTINENTS.has(key)) this.#note(value.line, `${JSON.stringify(key)} is not a continent`)
      else this.#level(`GEO-${key}`, value, (inner) => this.#countries(inner))
    }
  }

  #countries(hash: VscfHash): void {
    for (const [key, value] of this.#below(hash)) {
      this.#level(key, value, (inner) => this.#subdivisions(key, inner))
    }
  }

  #subdivisions(country: string, hash: VscfHash): void {
    for (const [key, value] of this.#below(hash)) {
      if (!/^[A-Z0-9]{1,3}$/.test(key))
        this.#note(value.line, `the city ${JSON.stringify(key)} has no equivalent`)
      else this.#level(`${country}-${key}`, value, (inner) => this.#subdivisions(country, inner))
    }
  }

  #below(hash: VscfHash): [string, Vscf][] {
    return [...hash.entries].filter(([key]) => key !== 'default')
  }

  /** A list, or a hash whose list is its `default`. */
  #level(code: string, value: Vscf, read: (hash: VscfHash) => void): void {
    if (value.kind !== 'hash') {
      this.#codes.set(code, preferenceOf(value))
      return
    }
    const own = value.entries.get('default')
    if (own !== undefined) this.#codes.set(code, preferenceOf(own))
    read(value)
  }
}
