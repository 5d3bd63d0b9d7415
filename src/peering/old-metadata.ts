import { printLatin1 } from '../base/latin1.ts'
import { RRType } from '../dns/iana/types.ts'
import { isWellFormed } from '../dns/rdata/index.ts'
import { scanGeoCode } from '../geo/code.ts'
import { WEIGHT_MAX } from '../records/dns-record.ts'
import { metadataHosts } from '../records/kdrnt.ts'
import { KDRNT } from '../records/local-zone.ts'
import { quote } from '../records/validate/fields.ts'

/** Maximum of TXT records that are read. In practice a name has no more than its record has endpoints. */
const RECORDS_MAX = 1000
const GEO_STRINGS = 3
const WILDCARD = '*.'

/**
 * A `geo=` line of a host. It applies to endpoints that lead to a name that begins with the code.
 */
export interface OldGeo {
  /** Canonical; '*' for a default that has no code. */
  readonly code: string
  readonly isDefault: boolean
}

/** Content of the `w.` and `g.` records of a host. */
export interface OldMetadata {
  /** Lowest weight by name, without `.kdrnt`. */
  readonly weights: ReadonlyMap<string, number>
  readonly geos: readonly OldGeo[]
  /** Quote the peer's text. */
  readonly problems: readonly string[]
}

/**
 * Returns the names to query at a v1 peer for the TXT metadata of a host, the usual one first;
 * absolute, without final dots. For a wildcard host, peers of that version write to one name and
 * read another. `rootHost`: with its `*.` if it has one.
 */
export function metadataNames(prefix: 'w' | 'g', rootHost: string): string[] {
  const isWild = rootHost.startsWith(WILDCARD)
  const host = isWild ? rootHost.slice(WILDCARD.length) : rootHost
  return metadataHosts(host, isWild).map((name) => `${prefix}.${name}.${KDRNT}`)
}

/** Reads the TXT rdata of `w.` and `g.`. An invalid line is skipped and its reason is reported. */
export function readOldMetadata(
  weightRecords: readonly Uint8Array[],
  geoRecords: readonly Uint8Array[],
): OldMetadata {
  const problems: string[] = []
  const weights = new Map<string, number>()
  const geos = new Map<string, OldGeo>()
  for (const rdata of weightRecords.slice(0, RECORDS_MAX)) {
    const line = scanWeight(stringsOf(rdata).join(''))
    if (typeof line === 'string') problems.push(line)
    // If a name had several weights, their owners are lost. The lowest is safe: no endpoint asks
    // for less.
    else weights.set(line.name, Math.min(line.weight, weights.get(line.name) ?? WEIGHT_MAX))
  }
  for (const rdata of geoRecords.slice(0, RECORDS_MAX)) {
    const geo = scanGeo(stringsOf(rdata))
    if (typeof geo === 'string') {
      problems.push(geo)
      continue
    }
    const isDefault = geo.isDefault || geos.get(geo.code)?.isDefault === true
    geos.set(geo.code, { code: geo.code, isDefault })
  }
  const ordered = [...geos.values()].sort((a, b) => (a.code < b.code ? -1 : 1))
  return { weights, geos: ordered, problems }
}

/** Returns the strings of TXT rdata, octet for octet; empty if the rdata is malformed. */
function stringsOf(rdata: Uint8Array): string[] {
  const strings: string[] = []
  if (!isWellFormed(RRType.TXT, rdata)) return strings
  for (let at = 0; at < rdata.length; at += rdata[at]! + 1) {
    strings.push(printLatin1(rdata.subarray(at + 1, at + 1 + rdata[at]!)))
  }
  return strings
}

/** `<weight>,<dnsName>.kdrnt`. */
function scanWeight(text: string): { readonly name: string; readonly weight: number } | string {
  const comma = text.indexOf(',')
  const digits = text.slice(0, Math.max(0, comma))
  const name = withoutSuffix(text.slice(comma + 1).toLowerCase())
  const weight = /^\d{1,15}$/.test(digits) ? Number(digits) : -1
  if (comma < 0 || name === '') return `expected a weight and a name but got ${quote(text)}`
  if (weight < 0 || weight > WEIGHT_MAX) {
    return `invalid weight: expected a value from 0 to ${WEIGHT_MAX}, got ${quote(digits)}`
  }
  return { name, weight }
}

/**
 * Reads `geo=<code>` `type=continent|` `default=true|false`. The type repeats what the code says.
 */
function scanGeo(strings: readonly string[]): OldGeo | string {
  if (strings.length !== GEO_STRINGS) {
    return `expected ${GEO_STRINGS} lines in the geo txt record but got ${strings.length}`
  }
  const get = (key: string): string => {
    const found = strings.find((text) => text.startsWith(`${key}=`))
    return found === undefined ? '' : found.slice(key.length + 1)
  }
  const isDefault = get('default') === 'true'
  const code = scanGeoCode(get('geo'))
  if (code !== undefined) return { code: code.text, isDefault: isDefault || code.text === '*' }
  return `unexpected geo code ${quote(get('geo'))} in the geo txt record`
}

/** Returns a name without its final dot and its `.kdrnt`. */
function withoutSuffix(text: string): string {
  const name = text.endsWith('.') ? text.slice(0, -1) : text
  return name.endsWith(`.${KDRNT}`) ? name.slice(0, -KDRNT.length - 1) : name
}
