import { RRType } from '../dns/iana/types.ts'
import { isWellFormed } from '../dns/rdata/index.ts'
import { TARGETS_MAX } from '../dnsrecord/dns-record.ts'
import { validateEndpoint } from '../dnsrecord/validate/dns-record.ts'
import { quote } from '../dnsrecord/validate/fields.ts'
import { composeStrings } from '../dnsrecord/validate/target.ts'
import type { EndpointHealth, PeerEndpoint } from './peer-endpoint.ts'
import { isSite } from './site-name.ts'
import { toPeerEndpoint } from './to-peer-endpoint.ts'

/**
 * The v2 form of an exported endpoint: TXT rdata of strings `key=value`.
 *
 *     v=2 site=… host=… name=… type=A ttl=60 set=… weight=120 geo=GEO-EU,DE default=true
 *     location=52.52,13.40 health=up health-port=8081 health-address=10.0.0.1 since=1790000000
 *     target=… target=…
 *
 * `v` comes first. A string that begins with `+` continues the value before it, so that values of
 * any length fit. No character is split. Empty values are left out. Readers ignore unknown keys, so
 * that a later version may add some. A version that changes the meaning of a key changes `v`.
 */
const VERSION = '2'

const SITE_KEY = 'site='
const KEY = /^([a-z][a-z0-9-]{0,15})=/
const STRING_OCTETS_MAX = 255
const CONTINUED = '+'
/** Longest value: a target of a DNSRecord, or a list of geo codes, with up to four octets per character. */
const VALUE_CHARACTERS_MAX = 8192
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
export function composePeerEndpoint(endpoint: PeerEndpoint): Uint8Array | undefined {
  const { weight, probeAt } = endpoint
  const fields: [string, string][] = [
    ['v', VERSION],
    ['site', endpoint.site],
    ['host', endpoint.rootHost],
    ['name', endpoint.dnsName],
    ['type', endpoint.recordType],
    ['ttl', String(endpoint.ttlSeconds)],
  ]
  if (endpoint.setIdentifier !== '') fields.push(['set', endpoint.setIdentifier])
  if (weight !== undefined) fields.push(['weight', String(weight)])
  if (endpoint.geoCodes.length > 0) fields.push(['geo', endpoint.geoCodes.join(',')])
  if (endpoint.isDefault) fields.push(['default', 'true'])
  const { location } = endpoint
  if (location !== undefined) fields.push(['location', location])
  fields.push(['health', endpoint.health])
  if (probeAt !== undefined && probeAt.port !== 0)
    fields.push(['health-port', String(probeAt.port)])
  if (probeAt !== undefined && probeAt.address !== '')
    fields.push(['health-address', probeAt.address])
  fields.push(['since', String(endpoint.sinceSeconds)])
  for (const target of endpoint.targets) fields.push(['target', target])
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
 * Returns a string that says what is wrong if it is invalid; quotes the other site's text.
 */
export function scanPeerEndpoint(rdata: Uint8Array): PeerEndpoint | string {
  const fields = scanFields(rdata)
  if (typeof fields === 'string') return fields
  const { values, targets } = fields
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
  const health = scanHealth(get('health'))
  return toPeerEndpoint(checked.endpoint, { site, rootHost, health, sinceSeconds })
}

interface Fields {
  /** Values of all keys except `target`. */
  readonly values: ReadonlyMap<string, string>
  readonly targets: readonly string[]
}

function scanFields(rdata: Uint8Array): Fields | string {
  if (!isWellFormed(RRType.TXT, rdata)) return 'the rdata is not that of TXT'
  const values = new Map<string, string>()
  const targets: string[] = []
  for (const text of joinStrings(rdata)) {
    if (text === undefined) return 'a value is longer than it may be, or is not UTF-8'
    const key = KEY.exec(text)?.[1]
    if (values.size === 0 && key !== 'v') return 'the first string does not say v=2'
    if (key === undefined) continue
    const value = text.slice(key.length + 1)
    if (key === 'v' && value !== VERSION) return `version ${quote(value)} is not ${VERSION}`
    if (key !== 'target') {
      if (values.has(key)) return `${key} appears twice`
      values.set(key, value)
      continue
    }
    targets.push(value)
    if (targets.length > TARGETS_MAX) return `more than ${TARGETS_MAX} targets`
  }
  return { values, targets }
}

/** Yields the texts of a TXT record with continued strings joined; undefined for an invalid one. */
function* joinStrings(rdata: Uint8Array): Generator<string | undefined> {
  let parts: Uint8Array[] = []
  for (let at = 0; at < rdata.length; at += rdata[at]! + 1) {
    const string = rdata.subarray(at + 1, at + 1 + rdata[at]!)
    const isContinued = parts.length > 0 && string[0] === CONTINUED.charCodeAt(0)
    if (!isContinued && parts.length > 0) {
      yield decode(parts)
      parts = []
    }
    parts.push(isContinued ? string.subarray(1) : string)
  }
  if (parts.length > 0) yield decode(parts)
}

function decode(parts: readonly Uint8Array[]): string | undefined {
  try {
    const text = UTF8.decode(Buffer.concat(parts))
    return text.length > VALUE_CHARACTERS_MAX + 16 ? undefined : text
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    return undefined
  }
}

function scanNumber(text: string): number | undefined {
  return /^\d{1,12}$/.test(text) ? Number(text) : undefined
}

/** An unknown value, as from a later version, counts as `unknown`. */
function scanHealth(text: string): EndpointHealth {
  return text === 'up' || text === 'down' ? text : 'unknown'
}

function property(name: string, value: string | undefined): { name: string; value: string }[] {
  return value === undefined ? [] : [{ name, value }]
}
