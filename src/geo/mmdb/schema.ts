import { isSubdivision } from '../code.ts'
import { CONTINENTS, continentOf } from '../countries.ts'
import { type Location, UNKNOWN_LOCATION } from '../location.ts'
import { areCoordinates, type Coordinates } from '../point.ts'
import type { DataSection } from './data-section.ts'

/** Maximum of subdivisions read per entry; ISO 3166-2 nests two. */
const SUBDIVISIONS_MAX = 4

/**
 * Reads the place of one entry. Supports two families of schemas, detected per entry:
 *
 *     GeoIP2, GeoLite2   continent.code  country.iso_code  subdivisions[].iso_code
 *                        autonomous_system_number
 *                        location.latitude, location.longitude
 *     flat               continent_code  country_code      state, region
 *                        latitude, longitude
 *                        asn             (also country and continent as plain codes)
 *
 * A value that isn't a code counts as unknown, for example the full name of a state, or country ZZ.
 */
export function readLocation(data: DataSection, entry: number): Location {
  const location = readCodes(data, entry)
  if (location === UNKNOWN_LOCATION) return location
  const coordinates = readCoordinates(data, entry)
  return coordinates === undefined ? location : { ...location, coordinates }
}

/** Reads the place of one entry without its coordinates. */
export function readCodes(data: DataSection, entry: number): Location {
  return new CodesReader(data).read(entry)
}

/** The keys of an entry that have its place, in the order of `Key`. */
const KEYS: readonly string[] = [
  ...['country', 'country_code', 'continent', 'continent_code', 'subdivisions', 'state', 'region'],
  ...['autonomous_system_number', 'asn'],
]
const Key = {
  Country: 0,
  CountryCode: 1,
  Continent: 2,
  ContinentCode: 3,
  Subdivisions: 4,
  State: 5,
  Region: 6,
  AsNumber: 7,
  Asn: 8,
} as const

/**
 * Reads places without coordinates. Entries of a City database share the values of their places by pointers: such
 * entries get one object.
 */
export class CodesReader {
  readonly #data: DataSection
  /** Offset of the value of the entry, by `Key`; -1 = it has none. */
  readonly #at = new Int32Array(KEYS.length)
  /** By the offsets of the values, behind pointers. */
  readonly #known = new Map<string, Location>()

  constructor(data: DataSection) {
    this.#data = data
  }

  read(entry: number): Location {
    const at = this.#at
    this.#data.findEach(entry, KEYS, at)
    let key = ''
    for (let i = 0; i < at.length; i++) key += `${this.#data.targetOf(at[i]!)} `
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const location = this.#read()
    this.#known.set(key, location)
    return location
  }

  #read(): Location {
    const country = this.#country()
    const given = this.#code(Key.Continent, 'code', Key.ContinentCode).toUpperCase()
    const continent = CONTINENTS.has(given) ? given : continentOf(country)
    const asn = this.#asn()
    if (country === '' && continent === '' && asn === 0) return UNKNOWN_LOCATION
    const subdivisions = country === '' ? [] : this.#subdivisions(country)
    return { net: '', asn, subdivisions, country, continent }
  }

  #country(): string {
    const country = this.#code(Key.Country, 'iso_code', Key.CountryCode).toUpperCase()
    return continentOf(country) === '' ? '' : country
  }

  /** A code in a map, or as the value itself, else under another key. */
  #code(key: number, inner: string, flat: number): string {
    const data = this.#data
    const nested = this.#at[key]!
    if (nested === -1) return data.text(this.#at[flat]!)
    return data.text(nested) || data.text(data.find(nested, inner))
  }

  #asn(): number {
    const data = this.#data
    const number = limitAsn(data.uint(this.#at[Key.AsNumber]!))
    if (number !== 0) return number
    const flat = this.#at[Key.Asn]!
    const text = /^(?:AS)?([1-9][0-9]{0,9})$/i.exec(data.text(flat))?.[1]
    return limitAsn(text === undefined ? data.uint(flat) : Number(text))
  }

  #subdivisions(country: string): string[] {
    const data = this.#data
    const nested = data.items(this.#at[Key.Subdivisions]!).slice(0, SUBDIVISIONS_MAX)
    const codes =
      nested.length > 0
        ? nested.map((item) => data.text(data.find(item, 'iso_code')))
        : [data.text(this.#at[Key.State]!) || data.text(this.#at[Key.Region]!)]
    const full = codes.map((code) => {
      const upper = code.toUpperCase()
      return upper.startsWith(`${country}-`) ? upper : `${country}-${upper}`
    })
    return [...new Set(full.filter(isSubdivision))]
  }
}

/** Returns 0 for numbers above 32 bits: integers of a database have up to 128. */
function limitAsn(number: number): number {
  return number <= 0xffffffff ? number : 0
}

/** Returns undefined if the entry has no valid coordinates. */
function readCoordinates(data: DataSection, entry: number): Coordinates | undefined {
  const nested = data.find(entry, 'location')
  const at = nested === -1 ? entry : nested
  const read = (key: string): number => {
    const text = data.print(data.find(at, key))
    return text.trim() === '' ? Number.NaN : Number(text)
  }
  const coordinates = { latitude: read('latitude'), longitude: read('longitude') }
  return areCoordinates(coordinates) ? coordinates : undefined
}
