import { CONTINENTS, continentOf } from './countries.ts'

/** The names of the rungs of the GEO ladder, most specific first. Each code belongs to one rung. */
export const GEO_RUNGS = {
  net: 'custom net',
  asn: 'ASN',
  subdivision: 'subdivision',
  country: 'country',
  continent: 'continent',
  default: 'default',
} as const
type GeoRung = keyof typeof GEO_RUNGS

/**
 * A geo code of an endpoint, parsed. One form per rung: custom net `NET-<label>`, ASN `AS64500`,
 * subdivision `US-CA`, country `US`, continent `GEO-NA`, default `*`.
 */
export interface GeoCode {
  readonly rung: GeoRung
  /** Canonical text in upper case; identifies the code. */
  readonly text: string
}

/** Maximum length of a code: `NET-` and a label of 63 characters. */
const CODE_LENGTH_MAX = 67

/**
 * Parses a geo code in any case. Returns undefined if it is invalid, for example a continent
 * without `GEO-`, a country that ISO 3166-1 doesn't list, or `AS0`.
 */
export function scanGeoCode(text: string): GeoCode | undefined {
  const known = recentCodes.get(text)
  if (known !== undefined) return known
  const code = scanCode(text)
  if (code === undefined || text.length > RECENT_LENGTH_MAX) return code
  if (recentCodes.size === RECENT_CODES_MAX) recentCodes.clear()
  recentCodes.set(text, code)
  return code
}

/** Codes by their text: many endpoints have the same few. */
const recentCodes = new Map<string, GeoCode>()
const RECENT_CODES_MAX = 1024
/** V8 may keep the whole text that a longer one was cut from. */
const RECENT_LENGTH_MAX = 12

function scanCode(text: string): GeoCode | undefined {
  // Reject characters above ASCII first: upper case turns ß into two letters.
  if (text.length > CODE_LENGTH_MAX || !/^[*0-9A-Za-z_-]+$/.test(text)) return undefined
  const code = text.toUpperCase()
  const rung = rungOf(code)
  return rung === undefined ? undefined : { rung, text: code }
}

function rungOf(code: string): GeoRung | undefined {
  if (code === '*') return 'default'
  if (code.startsWith('GEO-')) return CONTINENTS.has(code.slice(4)) ? 'continent' : undefined
  if (code.startsWith('NET-')) return /^NET-[0-9A-Z_-]{1,63}$/.test(code) ? 'net' : undefined
  if (/^AS[1-9][0-9]{0,9}$/.test(code)) {
    return Number(code.slice(2)) <= 0xffffffff ? 'asn' : undefined
  }
  if (continentOf(code.slice(0, 2)) === '') return undefined
  if (code.length === 2) return 'country'
  return isSubdivision(code) ? 'subdivision' : undefined
}

/** True if `code` has the form of ISO 3166-2: country, hyphen, one to three letters or digits. */
export function isSubdivision(code: string): boolean {
  return /^[A-Z]{2}-[0-9A-Z]{1,3}$/.test(code)
}
