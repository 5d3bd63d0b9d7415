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
  const country = readCountry(data, entry)
  const given = readContinent(data, entry)
  const continent = CONTINENTS.has(given) ? given : continentOf(country)
  const asn = readAsn(data, entry)
  if (country === '' && continent === '' && asn === 0) return UNKNOWN_LOCATION
  const subdivisions = country === '' ? [] : readSubdivisions(data, entry, country)
  return { net: '', asn, subdivisions, country, continent }
}

function readCountry(data: DataSection, entry: number): string {
  const nested = data.find(entry, 'country')
  const code =
    nested === -1
      ? data.text(data.find(entry, 'country_code'))
      : data.text(nested) || data.text(data.find(nested, 'iso_code'))
  const country = code.toUpperCase()
  return continentOf(country) === '' ? '' : country
}

function readContinent(data: DataSection, entry: number): string {
  const nested = data.find(entry, 'continent')
  const code =
    nested === -1
      ? data.text(data.find(entry, 'continent_code'))
      : data.text(nested) || data.text(data.find(nested, 'code'))
  return code.toUpperCase()
}

function readAsn(data: DataSection, entry: number): number {
  const number = limitAsn(data.uint(data.find(entry, 'autonomous_system_number')))
  if (number !== 0) return number
  const flat = data.find(entry, 'asn')
  const text = /^(?:AS)?([1-9][0-9]{0,9})$/i.exec(data.text(flat))?.[1]
  return limitAsn(text === undefined ? data.uint(flat) : Number(text))
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

function readSubdivisions(data: DataSection, entry: number, country: string): string[] {
  const nested = data.items(data.find(entry, 'subdivisions')).slice(0, SUBDIVISIONS_MAX)
  const codes =
    nested.length > 0
      ? nested.map((item) => data.text(data.find(item, 'iso_code')))
      : [data.text(data.find(entry, 'state')) || data.text(data.find(entry, 'region'))]
  const full = codes.map((code) => {
    const upper = code.toUpperCase()
    return upper.startsWith(`${country}-`) ? upper : `${country}-${upper}`
  })
  return [...new Set(full.filter(isSubdivision))]
}
