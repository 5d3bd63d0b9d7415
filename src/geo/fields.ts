import type { DataSection } from './mmdb/data-section.ts'

/**
 * The labels of CoreDNS's geoip plugin, as paths into a whole GeoIP2 entry; the second path is that
 * of flat databases. Labels of place codes are missing here: their values come from `locate`, which
 * applies custom nets.
 */
const PATHS: ReadonlyMap<string, readonly (readonly string[])[]> = new Map([
  ['geoip/city/name', [['city', 'names', 'en'], ['city']]],
  ['geoip/country/name', [['country', 'names', 'en'], ['country_name']]],
  ['geoip/country/is_in_european_union', [['country', 'is_in_european_union']]],
  ['geoip/continent/name', [['continent', 'names', 'en'], ['continent_name']]],
  ['geoip/latitude', [['location', 'latitude'], ['latitude']]],
  ['geoip/longitude', [['location', 'longitude'], ['longitude']]],
  ['geoip/timezone', [['location', 'time_zone'], ['timezone']]],
  ['geoip/postalcode', [['postal', 'code'], ['postcode']]],
  ['geoip/asn/org', [['autonomous_system_organization'], ['as_name']]],
])

/** Labels that describe the database's place, and so are wrong for a place from a custom net. */
const ASN_LABELS: ReadonlySet<string> = new Set(['geoip/asn/number', 'geoip/asn/org'])

export function isPlaceLabel(label: string): boolean {
  return !ASN_LABELS.has(label)
}

/** Every label, in the order of CoreDNS's documentation. */
export const GEOIP_LABELS: readonly string[] = [
  ...PATHS.keys(),
  'geoip/country/code',
  'geoip/continent/code',
  'geoip/subdivisions/code',
  'geoip/asn/number',
]

/** Returns the field of an entry that `label` names, as text; '' if it is missing. Throws InputError. */
export function readField(data: DataSection, entry: number, label: string): string {
  for (const path of PATHS.get(label) ?? []) {
    const text = data.print(data.findPath(entry, ...path))
    if (text !== '') return text
  }
  return ''
}
