import { printLatin1 } from '../base/latin1.ts'
import { RRType } from '../dns/iana/types.ts'
import { isWellFormed } from '../dns/rdata/index.ts'
import { TARGETS_MAX } from '../records/dns-record.ts'
import { validateEndpoint } from '../records/validate/dns-record.ts'
import { quote } from '../records/validate/fields.ts'
import { composeStrings } from '../records/validate/target.ts'
import { type EndpointHealth, type PeerEndpoint, printTargets } from './peer-endpoint.ts'
import {
  printRecordTexts,
  RECORD_KEYS,
  type ScanRecordOptions,
  scanRecordTexts,
} from './record-texts.ts'
import { isSite } from './site-name.ts'
import { toPeerEndpoint } from './to-peer-endpoint.ts'

/**
 * The v2 form of an exported endpoint: TXT rdata of strings `key=value`.
 *
 *     v=2 site=… host=… name=… type=A ttl=60 set=… weight=120 geo=GEO-EU,DE default=true
 *     location=52.52,13.40 health=up health-port=8081 health-address=10.0.0.1 since=1790000000
 *     created=1780000000 undated=true record=0123abcd all-down=closed sticky=24␠56 answers=3
 *     failover=DE:FR,US;*:US drain=racks␠move drain-until=2026-11-24T18:00:00Z shift=to=b␠steps=5%,100%␠bake=10m0s
 *     target=… target=…
 *
 * `v` comes first. A string that begins with `+` continues the value before it, so that values of
 * any length fit. No character is split. Empty values are left out, except that of `drain`. Readers
 * ignore unknown keys, so that a later version may add some. A version that changes the meaning of a
 * key changes `v`.
 */
const VERSION = '2'

const SITE_KEY = 'site='
const KEY = /^([a-z][a-z0-9-]{0,15})=/
const STRING_OCTETS_MAX = 255
const CONTINUED = '+'
/** Longest value: a target of a DNSRecord, or a list of geo codes, with up to four octets per character. */
const VALUE_CHARACTERS_MAX = 8192
const OPTIONAL_KEYS: ReadonlySet<string> = new Set(RECORD_KEYS)
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Returns the site that a record names, without reading the rest of it; '' = none. `rdata`: of TXT,
 * well-formed, one character per octet.
 */
export function siteOf(rdata: string): string {
  for (let at = 0; at < rdata.length; at += rdata.charCodeAt(at) + 1) {
    if (!rdata.startsWith(SITE_KEY, at + 1)) continue
    const site = rdata.slice(at + 1 + SITE_KEY.length, at + 1 + rdata.charCodeAt(at))
    return isSite(site) ? site : ''
  }
  return ''
}

/**
 * Returns TXT rdata with the whole endpoint; undefined if it does not fit into a record (64 KiB).
 */
export function composePeerEndpoint(exported: PeerEndpoint): Uint8Array | undefined {
  const { endpoint } = exported
  const { setIdentifier, weight, codes, point, probeAt } = endpoint
  const { dnsName, recordType, targets } = printTargets(endpoint)
  const fields: [string, string][] = [
    ['v', VERSION],
    ['site', exported.site],
    ['host', exported.rootHost],
    ['name', dnsName],
    ['type', recordType],
    ['ttl', String(endpoint.ttlSeconds)],
  ]
  if (setIdentifier !== '') fields.push(['set', setIdentifier])
  if (weight !== undefined) fields.push(['weight', String(weight)])
  if (codes.length > 0) fields.push(['geo', codes.map(({ text }) => text).join(',')])
  if (endpoint.isDefault) fields.push(['default', 'true'])
  if (point !== undefined) fields.push(['location', point.text])
  fields.push(['health', exported.health])
  if (probeAt !== undefined && probeAt.port !== 0)
    fields.push(['health-port', String(probeAt.port)])
  if (probeAt !== undefined && probeAt.address !== '')
    fields.push(['health-address', probeAt.address])
  fields.push(['since', String(exported.sinceSeconds)])
  fields.push(...printRecordTexts(exported))
  for (const target of targets) fields.push(['target', target])
  const strings = fields.flatMap(([key, value]) => splitValue(`${key}=${value}`))
  const rdata = composeStrings(strings)
  return typeof rdata === 'string' ? undefined : rdata
}

/** Splits text into strings of at most 255 octets, between characters. */
function splitValue(text: string): Uint8Array[] {
  const strings: Uint8Array[] = []
  let rest = Buffer.from(text, 'utf8')
  while (rest.length > STRING_OCTETS_MAX) {
    let end = STRING_OCTETS_MAX
    // Octets 10xxxxxx continue a character (RFC 3629 section 3).
    while ((rest[end]! & 0xc0) === 0x80) end--
    strings.push(rest.subarray(0, end))
    rest = Buffer.concat([Buffer.from(CONTINUED), rest.subarray(end)])
  }
  return [...strings, rest]
}

/**
 * Reads an endpoint from another site. It is validated like an endpoint of a DNSRecord with that
 * root host, so it is at or below that host. The result has the form that `toPeerEndpoint` makes.
 * Returns a string that says what is wrong if it is invalid; quotes the other site's text. If only
 * a property of its record is invalid, the endpoint is returned without it, and `onProblem` is
 * called: `site east: sticky "yes" is ignored: must be …`.
 */
export function scanPeerEndpoint(
  rdata: Uint8Array,
  { nowSeconds, onProblem = () => {} }: ScanRecordOptions = {},
): PeerEndpoint | string {
  const fields = scanFields(rdata)
  if (typeof fields === 'string') return fields
  const { values, targets, faults } = fields
  const get = (key: string): string => values.get(key) ?? ''
  const site = get('site')
  if (!isSite(site)) return `site ${quote(site)} is no name of a site`
  const ttl = scanNumber(get('ttl'))
  if (ttl === undefined) return `ttl ${quote(get('ttl'))} is no number`
  const sinceSeconds = scanNumber(values.get('since') ?? '0')
  if (sinceSeconds === undefined) return `since ${quote(get('since'))} is no number`
  const rootHost = get('host').toLowerCase().replace(/\.$/, '')
  const providerSpecific = [
    ...property('weight', values.get('weight')),
    ...property('geo-code', values.get('geo')),
    ...property('default', values.get('default')),
    ...property('location', values.get('location')),
    ...property('health-port', values.get('health-port')),
    ...property('health-address', values.get('health-address')),
  ]
  const object = {
    dnsName: get('name'),
    recordType: get('type'),
    recordTTL: ttl,
    setIdentifier: get('set'),
    targets,
    providerSpecific,
  }
  const checked = validateEndpoint(object, rootHost)
  if ('problem' in checked) return checked.problem.message
  const report = (text: string): void => onProblem(`site ${site}: ${text}`)
  const health = scanHealth(values.get('health') ?? 'unknown', report)
  for (const [key, fault] of faults) report(`${key} is ignored: ${fault}`)
  const ofRecord = scanRecordTexts((key) => values.get(key), { nowSeconds, onProblem: report })
  return toPeerEndpoint(checked.endpoint, { site, rootHost, health, sinceSeconds, ...ofRecord })
}

interface Fields {
  /** Values of all keys except `target`. */
  readonly values: ReadonlyMap<string, string>
  readonly targets: readonly string[]
  /** What is wrong with keys that `values` therefore does not have. */
  readonly faults: ReadonlyMap<string, string>
}

function scanFields(rdata: Uint8Array): Fields | string {
  if (!isWellFormed(RRType.TXT, rdata)) return 'the rdata is not that of TXT'
  const values = new Map<string, string>()
  const targets: string[] = []
  const faults = new Map<string, string>()
  for (const octets of joinStrings(rdata)) {
    const text = decode(octets)
    const key = keyOf(text ?? printLatin1(octets))
    if (values.size === 0 && key !== 'v') return 'the first string does not say v=2'
    const value = text?.slice(key.length + 1)
    const fault = findFault(key, value, values)
    if (fault !== '') {
      if (!OPTIONAL_KEYS.has(key)) return fault
      const quoted = value === undefined ? `: ${quote(printLatin1(octets))}` : ''
      if (!faults.has(key)) faults.set(key, fault + quoted)
    } else if (key === 'target') {
      targets.push(value!)
      if (targets.length > TARGETS_MAX) return `more than ${TARGETS_MAX} targets`
    } else if (key !== '') values.set(key, value!)
  }
  for (const key of faults.keys()) values.delete(key)
  return { values, targets, faults }
}

/** Returns what is wrong with a string; '' = nothing. `value`: undefined = it could not be decoded. */
function findFault(
  key: string,
  value: string | undefined,
  values: ReadonlyMap<string, string>,
): string {
  if (value === undefined) return 'a value is longer than it may be, or is not UTF-8'
  if (key === 'v' && value !== VERSION) return `version ${quote(value)} is not ${VERSION}`
  if (key === '' || !values.has(key)) return ''
  if (!OPTIONAL_KEYS.has(key)) return `${key} appears twice`
  return `it appears twice, as ${quote(values.get(key)!)} and ${quote(value)}`
}

/** Returns '' if the string has no key. */
function keyOf(text: string): string {
  return KEY.exec(text)?.[1] ?? ''
}

/** Yields the octets of the texts of a TXT record, with continued strings joined. */
function* joinStrings(rdata: Uint8Array): Generator<Uint8Array> {
  let parts: Uint8Array[] = []
  for (let at = 0; at < rdata.length; at += rdata[at]! + 1) {
    const string = rdata.subarray(at + 1, at + 1 + rdata[at]!)
    const isContinued = parts.length > 0 && string[0] === CONTINUED.charCodeAt(0)
    if (!isContinued && parts.length > 0) {
      yield Buffer.concat(parts)
      parts = []
    }
    parts.push(isContinued ? string.subarray(1) : string)
  }
  if (parts.length > 0) yield Buffer.concat(parts)
}

/** Returns undefined if the text is invalid. */
function decode(octets: Uint8Array): string | undefined {
  try {
    const text = UTF8.decode(octets)
    return text.length > VALUE_CHARACTERS_MAX + 16 ? undefined : text
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    return undefined
  }
}

function scanNumber(text: string): number | undefined {
  return /^\d{1,12}$/.test(text) ? Number(text) : undefined
}

/** An unknown value, as from a later version, counts as `unknown`, and is reported. */
function scanHealth(text: string, report: (text: string) => void): EndpointHealth {
  if (text === 'up' || text === 'down' || text === 'unknown') return text
  report(`health ${quote(text)} is ignored: must be up, down or unknown`)
  return 'unknown'
}

function property(name: string, value: string | undefined): { name: string; value: string }[] {
  return value === undefined ? [] : [{ name, value }]
}
