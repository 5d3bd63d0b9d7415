import { scanGeoCode } from './code.ts'

/** Codes that are in use for a country or a continent, and are not in ISO 3166-1. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ['UK', 'GB'],
  ['EL', 'GR'],
  ['USA', 'US'],
  ['AFRICA', 'GEO-AF'],
  ['ASIA', 'GEO-AS'],
  ['EUROPE', 'GEO-EU'],
  ['OCEANIA', 'GEO-OC'],
  ['DEFAULT', '*'],
])

/** `; did you mean GB?` for text that is not a geo code; '' if none is near. */
export function geoCodeHint(text: string): string {
  const upper = text.slice(0, 80).trim().toUpperCase().replaceAll('_', '-')
  const [, system = ''] = /^ASN?[- ]?([0-9]+)$/.exec(upper) ?? []
  const bare = upper.startsWith('GEO-') ? upper.slice(4) : upper
  const country = ALIASES.get(bare) ?? bare
  const subdivision = bare.replace(/^[A-Z]+(?=-)/, (code) => ALIASES.get(code) ?? code)
  const asn = system === '' ? '' : `AS${system}`
  for (const candidate of [country, `GEO-${bare}`, asn, subdivision]) {
    const isOwn = candidate === text.toUpperCase()
    if (!isOwn && scanGeoCode(candidate) !== undefined) return `; did you mean ${candidate}?`
  }
  return ''
}
