import { createHash } from 'node:crypto'
import { scanJsonText } from '../base/json-text.ts'
import type { YamlValue } from '../yaml/scan-block-yaml.ts'
import { DERIVED_ENDPOINTS_MAX } from './dns-record.ts'

/**
 * Annotation of a DNSRecord that an operator derived from the records of several sites or owners: what its server
 * needs of each of them and cannot read in `spec.endpoints`. JSON on one line; fields that are empty are missing:
 *
 *     {"v": 1, "site": own site, "of": digest of spec.endpoints, "parts": [
 *       {"site", "id": recordId, "name": of our own record, "created": seconds, "undated": true, "partial": true,
 *        "checked": true, "settings": {"sticky": "true"},
 *        "endpoints": [index in spec.endpoints | endpoint that is not there in that form],
 *        "down": {address or host name: reason}, "decided": {the same},
 *        "owner": id in the registry of an authoritative record, "cluster", "group", "lacks": "settings"}]}
 *
 * `down` is what the owner's own operator found, `decided` what the operator of the authoritative record decided; it is
 * missing where both are equal. On a delegating record the annotation has one part without endpoints: what the
 * record's own operator found.
 */
export const SITES_ANNOTATION = 'sextant.io/sites'

const VERSION = 1
/** Parts of one record: as many as endpoints. */
const PARTS_MAX = DERIVED_ENDPOINTS_MAX
const DIGEST_CHARACTERS = 16
const REASON_CHARACTERS_MAX = 100
/** A site name, or the address of a peer that has none. `@` and `~` separate it in keys of records. */
const SITE = /^[!-?A-}]{1,300}$/

type Texts = Readonly<Record<string, string>>
type Mapping = { readonly [key: string]: YamlValue }

/** An endpoint as `spec.endpoints` has it. It is not validated. */
export type FactEndpoint = Mapping

/** What had no room in the annotation: endpoints that are down; or these, and settings. */
const LACKS = ['endpoints', 'settings'] as const
type Lacks = (typeof LACKS)[number]

/** What one record of one site contributes. `E`: what an endpoint is. */
export interface SitePart<E = FactEndpoint> {
  readonly site: string
  /** `recordId` of the original record at its site; '' = not known. */
  readonly id: string
  /** Name of the original record, if it is one of this site in the same namespace; '' = it is not. */
  readonly name: string
  /** Creation time of the original record, in seconds since the epoch; 0 = not known. */
  readonly createdSeconds: number
  /** As in RecordRank. */
  readonly isUndated?: boolean | undefined
  /** As in RecordOrigin. */
  readonly isPartial?: boolean | undefined
  /** The original record has a health check. Only parts of other clusters in an authoritative record have this. */
  readonly isChecked?: boolean | undefined
  /** Settings of the original record, as `printSettings` prints them. */
  readonly settings: Texts
  readonly endpoints: readonly E[]
  /** Addresses and host names that are down, with the reasons; '' = not known. */
  readonly down: Texts
  /** Those that count instead of `down`; missing = `down` counts. */
  readonly decided?: Texts | undefined
  /** The owner of the endpoints in an authoritative record; undefined = no owner is known. */
  readonly owner?: PartOwner | undefined
  /** Missing = nothing. */
  readonly lacks?: Lacks | undefined
}

/** An owner in the registry of an authoritative record. */
export interface PartOwner {
  readonly id: string
  /** Short id of its cluster; '' = the cluster that has the authoritative record. */
  readonly cluster: string
  /** '' = none. */
  readonly group: string
}

export interface SiteFacts<E = FactEndpoint> {
  /** The site of the operator that wrote them. */
  readonly site: string
  readonly parts: readonly SitePart<E>[]
}

/**
 * Prints facts for a record with these endpoints. An endpoint that `specEndpoints` has is printed as its index.
 * `identityOf`: equal for endpoints that are the same.
 */
export function printSiteFacts(
  { site, parts }: SiteFacts,
  specEndpoints: readonly FactEndpoint[],
  identityOf: (endpoint: FactEndpoint) => string,
): string {
  const indexes = new Map<string, number>()
  for (const [index, endpoint] of specEndpoints.entries()) {
    const identity = identityOf(endpoint)
    if (!indexes.has(identity)) indexes.set(identity, index)
  }
  const printed = parts.map((part) => {
    return printPart(part, (endpoint) => indexes.get(identityOf(endpoint)) ?? endpoint)
  })
  return JSON.stringify({ v: VERSION, site, of: digestOf(specEndpoints), parts: printed })
}

function printPart(
  part: SitePart,
  refer: (endpoint: FactEndpoint) => FactEndpoint | number,
): object {
  const { site, id, name, createdSeconds, settings, endpoints, down, decided, owner } = part
  const printed = withoutEmpty({
    site,
    id,
    name,
    created: createdSeconds,
    undated: part.isUndated,
    partial: part.isPartial,
    checked: part.isChecked,
    settings,
    endpoints: endpoints.map(refer),
    down: printReasons(down),
    owner: owner?.id,
    cluster: owner?.cluster,
    group: owner?.group,
    lacks: part.lacks,
  })
  return decided === undefined ? printed : { ...printed, decided: printReasons(decided) }
}

function printReasons(reasons: Texts): Texts {
  const sorted = Object.entries(reasons).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(
    sorted.map(([address, reason]) => {
      // By code points: the API replaces half a surrogate pair.
      return [address, [...reason].slice(0, REASON_CHARACTERS_MAX).join('')]
    }),
  )
}

/** The addresses and host names of a part that are out of service, with the reasons. */
export function outOf({ down, decided }: Pick<SitePart, 'down' | 'decided'>): Texts {
  return decided ?? down
}

function withoutEmpty(mapping: object): object {
  const isEmpty = (value: unknown): boolean => {
    if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0
    return value === undefined || value === '' || value === 0 || value === false
  }
  return Object.fromEntries(Object.entries(mapping).filter(([, value]) => !isEmpty(value)))
}

/**
 * Reads the facts of a record with these endpoints. Returns why they are not valid. The endpoints are not validated.
 */
export function scanSiteFacts(
  text: string,
  specEndpoints: readonly FactEndpoint[],
): SiteFacts | string {
  const facts = scanJsonText(text)
  if (!isMapping(facts)) return 'is not a JSON object'
  if (facts.v !== VERSION)
    return `has version ${printShort(facts.v)}; this version reads ${VERSION}`
  const { site, parts = [] } = facts
  if (!isSite(site)) return `has an invalid site: ${printShort(site)}`
  if (facts.of !== digestOf(specEndpoints)) {
    return 'does not fit spec.endpoints, which was edited since'
  }
  if (!Array.isArray(parts) || parts.length > PARTS_MAX) return `needs up to ${PARTS_MAX} parts`
  const scanned: SitePart[] = []
  let count = 0
  for (const [index, part] of parts.entries()) {
    const found = isMapping(part) ? scanPart(part, specEndpoints) : 'is not a JSON object'
    if (typeof found === 'string') return `parts[${index}]: ${found}`
    count += found.endpoints.length
    if (count > DERIVED_ENDPOINTS_MAX) return `may have up to ${DERIVED_ENDPOINTS_MAX} endpoints`
    scanned.push(found)
  }
  return { site, parts: scanned }
}

function scanPart(part: Mapping, specEndpoints: readonly FactEndpoint[]): SitePart | string {
  const { site, created = 0, settings = {}, endpoints = [] } = part
  if (!isSite(site)) return `invalid site ${printShort(site)}`
  const names = scanNames(part)
  if (typeof names === 'string') return names
  if (!isSeconds(created))
    return `created must be seconds since the epoch, not ${printShort(created)}`
  const flags = scanFlags(part)
  if (typeof flags === 'string') return flags
  if (!isTexts(settings)) return 'settings must be strings by name'
  const health = scanHealth(part)
  if (typeof health === 'string') return health
  if (!Array.isArray(endpoints)) return 'endpoints must be a list'
  const found: FactEndpoint[] = []
  for (const one of endpoints) {
    const endpoint = typeof one === 'number' ? specEndpoints[one] : one
    if (!isMapping(endpoint)) return `spec.endpoints has no endpoint ${printShort(one)}`
    found.push(endpoint)
  }
  return {
    site,
    ...names,
    createdSeconds: created,
    ...flags,
    settings,
    ...health,
    endpoints: found,
  }
}

function scanFlags(
  part: Mapping,
): Pick<SitePart, 'isUndated' | 'isPartial' | 'isChecked' | 'lacks'> | string {
  const { undated = false, partial = false, checked = false, lacks } = part
  if (typeof undated !== 'boolean') return 'undated must be true or false'
  if (typeof partial !== 'boolean') return 'partial must be true or false'
  if (typeof checked !== 'boolean') return 'checked must be true or false'
  if (lacks !== undefined && typeof lacks !== 'string') return 'lacks must be a text'
  // A later version may know more of them. They are only for people.
  const known = LACKS.find((one) => one === lacks) ?? (lacks === undefined ? undefined : LACKS[0])
  return {
    ...(known === undefined ? {} : { lacks: known }),
    ...(undated ? { isUndated: true } : {}),
    ...(partial ? { isPartial: true } : {}),
    ...(checked ? { isChecked: true } : {}),
  }
}

function scanHealth({ down = {}, decided }: Mapping): Pick<SitePart, 'down' | 'decided'> | string {
  if (!isTexts(down)) return 'down must be reasons by address'
  if (decided === undefined) return { down }
  return isTexts(decided) ? { down, decided } : 'decided must be reasons by address'
}

/** Reads what identifies a part at its site, and in the registry. */
function scanNames(part: Mapping): Pick<SitePart, 'id' | 'name' | 'owner'> | string {
  const { id = '', name = '', owner, cluster = '', group = '' } = part
  if (!isText(id) || !isText(name)) return 'id and name must be strings'
  if (!isText(cluster) || !isText(group)) return 'cluster and group must be strings'
  if (owner === undefined) return { id, name }
  return isText(owner)
    ? { id, name, owner: { id: owner, cluster, group } }
    : 'owner must be a string'
}

/** Returns a digest of endpoints that does not depend on the order of fields. */
function digestOf(endpoints: readonly FactEndpoint[]): string {
  const text = JSON.stringify(endpoints, (_, value: unknown) => {
    if (!isMapping(value)) return value
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
  return createHash('sha256').update(text).digest('hex').slice(0, DIGEST_CHARACTERS)
}

function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function isTexts(value: unknown): value is Texts {
  return isMapping(value) && Object.values(value).every(isText)
}

function isSite(value: unknown): value is string {
  return isText(value) && SITE.test(value)
}

function isSeconds(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < 2 ** 32
}

/** Prints a value of unknown form for an error message. */
function printShort(value: YamlValue | undefined): string {
  if (typeof value === 'object' && value !== null) return 'a list or a mapping'
  const text = JSON.stringify(value ?? 'nothing')
  return text.length <= 60 ? text : `${text.slice(0, 60)}…`
}
