import { RRType } from '../dns/iana/types.ts'
import { concatNames, printName, scanName } from '../dns/name/name.ts'
import { ALIAS_TYPE, type DnsRecord, type Endpoint } from './dns-record.ts'
import { KDRNT, KDRNT_ZONE } from './local-zone.ts'
import { isWildcard } from './validate/names.ts'
import { composeStrings } from './validate/target.ts'

/**
 * The metadata records have no TTL of their own. TTL 0 makes a peer receive current data with each
 * query.
 */
const METADATA_TTL_SECONDS = 0
/** Replaces a wildcard's `*` where it can't be a label of its own. */
const WILDCARD_WORD = 'wildcard'

/** The label in front of a host for the export of its complete endpoints. */
export const V2_LABEL = 'v2'
/** The label in front of a host for what this site observed of peers' addresses. As long as V2_LABEL. */
export const OBSERVED_LABEL = 'o2'

type LocalSource = Pick<DnsRecord, 'rootHost' | 'isWildcardHost' | 'endpoints'>

/** Offset of the name in the rdata that gets the suffix too, by type. */
const TARGET_OFFSET: ReadonlyMap<number, number> = new Map([
  [RRType.CNAME, 0],
  [RRType.PTR, 0],
  [RRType.MX, 2],
  [RRType.SRV, 6],
])

/**
 * Returns the gateway-local form of a record's endpoints, which peers query:
 *
 * - Every owner and every name in rdata gets the suffix `.kdrnt`. Weights, geo codes, NS and ALIAS are
 *   omitted. Every site resolves the ALIAS endpoints of `exported` itself.
 * - `w.<host>.kdrnt` TXT, one record per weighted endpoint: `<weight>,<dnsName>.kdrnt`.
 * - `g.<host>.kdrnt` TXT, one record per geo code: `geo=<code>` `type=continent` (`type=` for the
 *   others) `default=true|false`. A default endpoint may only repeat an endpoint with a code, as
 *   DNSPolicy writes it. Then that code is the default. Any other default endpoint has the code `*`.
 *   Peers search for the code at the start of targets, which never start with `*`.
 * - `v2.<host>.kdrnt` TXT: `exported`, rdata with the complete endpoints. The host is without its
 *   `*.`. The name is omitted if nothing is exported.
 * - `o2.<host>.kdrnt` TXT: `observed`, rdata with observations of peers' addresses.
 *
 * The host is the record's rootHost. For a wildcard host `*.x` metadata is served at `w.x.kdrnt`,
 * at `w.wildcard.x.kdrnt` (where peers read it) and at `w.wildcardx.kdrnt` (where they wrote it).
 * Names that would be too long are omitted.
 */
export function deriveLocalEndpoints(
  record: LocalSource,
  exported: readonly Uint8Array[] = [],
  observed: readonly Uint8Array[] = [],
): readonly Endpoint[] {
  // No name is an apex here, so an NS would turn the rest of the record, including its metadata,
  // into a referral.
  const endpoints = record.endpoints.filter((e) => e.type !== RRType.NS && !isOfAlias(e))
  const derived: Endpoint[] = []
  const isWild =
    record.isWildcardHost || endpoints.some((e) => isWildcard(e.owner) && isHostOf(e.owner, record))
  const weights: Uint8Array[] = []
  const geos: Uint8Array[] = []
  const plainDefaults = endpoints.filter((e) => e.isDefault && e.codes.length === 0)
  const repeated = new Set<Endpoint>()
  for (const endpoint of endpoints) {
    const local = deriveEndpoint(endpoint)
    if (local === undefined) continue
    derived.push(local)
    if (endpoint.weight !== undefined) {
      weights.push(composeText(`${endpoint.weight},${printHost(local.owner)}`))
    }
    if (endpoint.codes.length === 0) continue
    const twins = plainDefaults.filter((other) => leadsToTheSame(endpoint, other))
    for (const twin of twins) repeated.add(twin)
    geos.push(...describeCodes(endpoint, endpoint.isDefault || twins.length > 0))
  }
  if (plainDefaults.some((e) => !repeated.has(e))) geos.push(describeCode('*', false, true))
  const rootHost = printName(record.rootHost)
  for (const host of metadataHosts(rootHost, isWild)) {
    derived.push(...composeMetadata('w', host, weights), ...composeMetadata('g', host, geos))
  }
  derived.push(...composeMetadata(V2_LABEL, rootHost, exported))
  derived.push(...composeMetadata(OBSERVED_LABEL, rootHost, observed))
  return derived
}

/**
 * False if the host is too long for the name at which its complete endpoints are exported.
 * `rootHost`: without `*.`.
 */
export function isExportable(rootHost: Uint8Array): boolean {
  return scanName(`${V2_LABEL}.${printName(rootHost)}${KDRNT}.`) !== undefined
}

/** True for an ALIAS endpoint, and for an endpoint that is made from one. */
function isOfAlias({ type, aliasOf }: Endpoint): boolean {
  return type === ALIAS_TYPE || aliasOf !== undefined
}

function deriveEndpoint(endpoint: Endpoint): Endpoint | undefined {
  const owner = concatNames(endpoint.owner, KDRNT_ZONE)
  if (owner === undefined) return undefined
  const offset = TARGET_OFFSET.get(endpoint.type)
  const rdata: Uint8Array[] = []
  for (const target of endpoint.rdata) {
    const local = offset === undefined ? target : suffixTarget(target, offset)
    if (local !== undefined) rdata.push(local)
  }
  if (rdata.length === 0) return undefined
  const unsteered = { weight: undefined, codes: [], isDefault: false, point: undefined }
  return { ...endpoint, owner, rdata, ...unsteered }
}

function suffixTarget(target: Uint8Array, offset: number): Uint8Array | undefined {
  const name = concatNames(target.subarray(offset), KDRNT_ZONE)
  if (name === undefined) return undefined
  const local = new Uint8Array(offset + name.length)
  local.set(target.subarray(0, offset))
  local.set(name, offset)
  return local
}

/** True if both endpoints have the same owner, type and targets. */
export function leadsToTheSame(one: Endpoint, other: Endpoint): boolean {
  return (
    one.type === other.type &&
    Buffer.compare(one.owner, other.owner) === 0 &&
    one.rdata.length === other.rdata.length &&
    one.rdata.every((rdata, i) => Buffer.compare(rdata, other.rdata[i]!) === 0)
  )
}

/** Returns three strings per code. */
function describeCodes({ codes }: Endpoint, isDefault: boolean): Uint8Array[] {
  return codes.map((code) => describeCode(code.text, code.rung === 'continent', isDefault))
}

function describeCode(code: string, isContinent: boolean, isDefault: boolean): Uint8Array {
  return composeText(
    `geo=${code}`,
    `type=${isContinent ? 'continent' : ''}`,
    `default=${isDefault}`,
  )
}

function composeText(...strings: string[]): Uint8Array {
  const rdata = composeStrings(strings.map((s) => Buffer.from(s, 'utf8')))
  return typeof rdata === 'string' ? new Uint8Array(1) : rdata
}

function isHostOf(owner: Uint8Array, record: LocalSource): boolean {
  return Buffer.compare(owner.subarray(2), record.rootHost) === 0
}

/**
 * Returns the names, without their `w.` or `g.` and `.kdrnt`, that carry the metadata of a record.
 * `host`: with or without a final dot, without `*.`.
 */
export function metadataHosts(host: string, isWild: boolean): string[] {
  if (!isWild) return [host]
  return [host, `${WILDCARD_WORD}.${host}`, `${WILDCARD_WORD}${host}`]
}

/** True if metadata of `host` is at a name. Both: without a final dot, `*.` and `.kdrnt`. */
export function isMetadataName(name: string, host: string): boolean {
  const [label = ''] = name.split('.', 1)
  const rest = name.slice(label.length + 1)
  if (label === V2_LABEL || label === OBSERVED_LABEL) return rest === host
  return (label === 'w' || label === 'g') && metadataHosts(host, true).includes(rest)
}

function composeMetadata(prefix: string, host: string, rdata: readonly Uint8Array[]): Endpoint[] {
  const owner = scanName(`${prefix}.${host}${KDRNT}.`)
  if (owner === undefined || rdata.length === 0) return []
  const ttlSeconds = METADATA_TTL_SECONDS
  const unsteered = { setIdentifier: '', weight: undefined, codes: [], isDefault: false }
  return [{ owner, type: RRType.TXT, ttlSeconds, rdata, ...unsteered }]
}

/** Prints a host without its final dot. */
function printHost(name: Uint8Array): string {
  return printName(name).slice(0, -1)
}
