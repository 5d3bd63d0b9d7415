import { RRType } from '../dns/iana/types.ts'
import { isWellFormed } from '../dns/rdata/index.ts'
import { scanGeoCode } from '../geo/code.ts'
import { WEIGHT_MAX } from '../record/dns-record.ts'
import { metadataHosts } from '../record/kdrnt.ts'
import { printLatin1 } from '../record/latin1.ts'
import { KDRNT } from '../record/local-zone.ts'
import { quote } from '../record/validate/fields.ts'

/** TXT records that are looked at; a name has no more in practice than its record has endpoints. */
const RECORDS_MAX = 1000
const GEO_STRINGS = 3
const WILDCARD = '*.'

/** `geo=` line of a host: endpoints that lead to a name which begins with the code have it. */
export interface OldGeo {
  /** Canonical; '*' for a default that has no code. */
  readonly code: string
  readonly isDefault: boolean
}

/** What the `w.` and `g.` records of a host say. */
export interface OldMetadata {
  /** Lowest weight by name, without `.kdrnt`. */
  readonly weights: ReadonlyMap<string, number>
  readonly geos: readonly OldGeo[]
  /** Peer's text in them is quoted. */
  readonly problems: readonly string[]
}

/**
 * The names to ask a v1 peer for the TXT metadata of a host, first the usual one; absolute, without
 * final dots. Those of a wildcard host are written at one and read at another by peers of that time.
 * `rootHost`: with its `*.` if it has one.
 */
export function metadataNames(prefix: 'w' | 'g', rootHost: string): string[] {
  const isWild = rootHost.startsWith(WILDCARD)
  const host = isWild ? rootHost.slice(WILDCARD.length) : rootHost
  return metadataHosts(host, isWild).map((name) => `${prefix}.${name}.${KDRNT}`)
}

/** Reads the TXT rdata of `w.` and `g.`: what is wrong costs its own line, with the reason. */
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
    // A name may have had several: which is whose is lost. The lowest asks for no more than any does.
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

/** Of TXT rdata, octet for octet; none where it is not well-formed. */
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
    return `invalid weight expected a value from 0 to ${WEIGHT_MAX}, got ${quote(digits)}`
  }
  return { name, weight }
}

/** `geo=<code>` `type=continent|` `default=true|false`: the type says what the code says already. */
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

/** A name without a final dot and its `.kdrnt`. */
function withoutSuffix(text: string): string {
  const name = text.endsWith('.') ? text.slice(0, -1) : text
  return name.endsWith(`.${KDRNT}`) ? name.slice(0, -KDRNT.length - 1) : name
}
