import { didYouMean } from '../../base/nearest.ts'
import { RRType } from '../../dns/iana/types.ts'
import { equalNames, isSubdomain } from '../../dns/name/name.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import {
  ALIAS_TYPE,
  DERIVED_ENDPOINTS_MAX,
  type DnsRecord,
  ENDPOINTS_MAX,
  type Endpoint,
  SET_IDENTIFIER_CHARACTERS_MAX,
  TARGETS_MAX,
  TTL_DEFAULT_SECONDS,
  TTL_MAX_SECONDS,
} from '../dns-record.ts'
import { CHECK_KINDS, type HealthCheck } from '../health-check.ts'
import { printRecordType } from '../print-endpoint.ts'
import {
  FieldPlace,
  type FieldProblem,
  field,
  isMapping,
  LABELS,
  METADATA,
  mappingField,
  quote,
  RESOURCE,
  RefusedError,
  SPEC,
  scalarField,
  sequenceField,
  stringField,
} from './fields.ts'
import { scanHealthCheck } from './health-check.ts'
import { scanHost, withoutWildcard } from './names.ts'
import { scanProbeAt } from './probe-properties.ts'
import { isRegistryText } from './registry-text.ts'
import { scanSettings } from './settings.ts'
import { scanSteeringProperties } from './steering-properties.ts'
import { RDATA_OCTETS_MAX, RECORD_TYPES, scanTarget } from './target.ts'

type Mapping = { readonly [key: string]: YamlValue }

const TYPE_LABEL = 'kuadrant.io/type'
const AUTHORITATIVE_LABEL = 'kuadrant.io/authoritative-record'
const ZONE_LABEL = 'kuadrant.io/coredns-zone-name'
/** The pattern in the CustomResourceDefinition. */
const ROOT_HOST = /^(?:[\w\-.~:/?#[\]@!$&'()*+,;=]+)\.(?:[\w\-.~:/?#[\]@!$&'()*+,;=]+)$/
/** Matches nearly every root host in a fraction of the time. */
const PLAIN_HOST = /^[\w*][\w.*-]*\w$/
const ROOT_HOST_CHARACTERS_MAX = 255
/** Zone of the gateway-local form. */
const KDRNT = 'kdrnt'

/** Place of an endpoint that is validated by itself. */
const ENDPOINT = new FieldPlace('')

/** Data of the record that its endpoints are validated against. */
interface Scope {
  readonly rootHost: Uint8Array
  readonly rootHostText: string
  /**
   * The record is already in gateway-local form: metadata names beside the root host, strings as
   * targets.
   */
  readonly isLocalForm: boolean
  /**
   * The record contains endpoints of several owners, which operators merged, and notes of their
   * owners.
   */
  readonly isAuthoritative: boolean
  readonly allowsNamesOutside: boolean
}

export interface ValidateOptions {
  /**
   * True: endpoints may be outside of the root host. Kuadrant's operator refuses such a record, and its server serves
   * them in their zone.
   */
  readonly allowsNamesOutside?: boolean
}

const ORDINARY = { isLocalForm: false, isAuthoritative: false, allowsNamesOutside: false }

/** True if the labels mark a record that contains the endpoints of several owners. */
export function isAuthoritativeLabel(labels: Mapping): boolean {
  return field(labels, AUTHORITATIVE_LABEL) === 'true'
}

/** True if the labels mark a record that is made from others. The health check is in these. */
export function isDerivedRecord(labels: Mapping): boolean {
  const zoneLabel = normalizeLabel(stringField(labels, ZONE_LABEL, LABELS))
  return zoneLabel === KDRNT || isAggregateLabel(labels)
}

function isAggregateLabel(labels: Mapping): boolean {
  return isAuthoritativeLabel(labels) || field(labels, TYPE_LABEL) === 'merged'
}

/** Validates a DNSRecord. Throws RefusedError at its first fault. */
export function validateDnsRecord(
  resource: Mapping,
  identity: { readonly namespace: string; readonly name: string },
  { allowsNamesOutside = false }: ValidateOptions = {},
): DnsRecord {
  const metadata = mappingField(resource, 'metadata', RESOURCE)
  const labels = mappingField(metadata, 'labels', METADATA)
  const zoneLabel = normalizeLabel(stringField(labels, ZONE_LABEL, LABELS))
  const spec = mappingField(resource, 'spec', RESOURCE)
  const rootHostText = stringField(spec, 'rootHost', SPEC)
  const rootHost = scanRootHost(rootHostText)
  const zone = scanZoneLabel(zoneLabel, rootHost)
  const isLocalForm = zoneLabel === KDRNT
  const isAuthoritative = isAuthoritativeLabel(labels)
  const scope: Scope = { rootHost, rootHostText, isLocalForm, isAuthoritative, allowsNamesOutside }
  const isAggregate = isAggregateLabel(labels)
  const isDerived = isLocalForm || isAggregate
  const endpointsMax = isDerived ? DERIVED_ENDPOINTS_MAX : ENDPOINTS_MAX
  const endpoints = scanEndpoints(spec, scope, endpointsMax)
  // Fields are listed by name, because each property after a spread costs a microsecond.
  return {
    namespace: identity.namespace,
    name: identity.name,
    zoneLabel,
    rootHost,
    isWildcardHost: rootHostText.startsWith('*.'),
    isAggregate,
    createdSeconds: scanCreated(metadata),
    endpoints,
    healthCheck: isDerived
      ? derivedCheck(spec, endpoints, zone)
      : scanRecordCheck(spec, rootHostText),
    settings: scanSettings(metadata, endpoints),
  }
}

/**
 * Validates one endpoint as part of a record with that root host. `rootHost`: a name, with or
 * without a leading `*.`. Never throws on bad input; the path of the problem starts at the
 * endpoint.
 */
export function validateEndpoint(
  endpoint: Mapping,
  rootHost: string,
): { readonly endpoint: Endpoint } | { readonly problem: FieldProblem } {
  try {
    const scope = { rootHost: scanRootHost(rootHost), rootHostText: rootHost, ...ORDINARY }
    return { endpoint: scanEndpoint(endpoint, ENDPOINT, scope) }
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error
    return { problem: error.problem }
  }
}

/**
 * Reads the record's health check. For a wildcard host, checks that send a definite host name are
 * not possible. Certificates are not verified, as is upstream's default. The check has no
 * field for it, and it tests the gateway, not its clients.
 */
function scanRecordCheck(spec: Mapping, rootHost: string): HealthCheck | undefined {
  if (field(spec, 'healthCheck') === undefined) return undefined
  const check = scanHealthCheck(mappingField(spec, 'healthCheck', SPEC), SPEC.at('healthCheck'))
  if (rootHost.startsWith('*.') && CHECK_KINDS[check.protocol].sendsHostName) return undefined
  return { ...check, allowsInsecureCertificate: true }
}

/**
 * Reads the health check of a derived record, which is that of the original record. It is necessary only for addresses
 * of ALIAS endpoints, and of CNAME endpoints at the apex: others are probed for the original record. An invalid check
 * has no effect. `zone`: undefined = unknown.
 */
function derivedCheck(
  spec: Mapping,
  endpoints: readonly Endpoint[],
  zone: Uint8Array | undefined,
): HealthCheck | undefined {
  const isAlias = ({ type, owner }: Endpoint): boolean => {
    if (type === ALIAS_TYPE) return true
    return type === RRType.CNAME && zone !== undefined && equalNames(owner, zone)
  }
  if (!endpoints.some(isAlias)) return undefined
  try {
    return scanRecordCheck(spec, stringField(spec, 'rootHost', SPEC))
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error
    return undefined
  }
}

function normalizeLabel(text: string): string {
  return (text.endsWith('.') ? text.slice(0, -1) : text).toLowerCase()
}

function scanCreated(metadata: Mapping): number {
  const text = stringField(metadata, 'creationTimestamp', METADATA)
  if (text === '') return 0
  const created = Date.parse(text)
  return Number.isNaN(created) ? 0 : Math.max(0, Math.floor(created / 1000))
}

function scanRootHost(text: string): Uint8Array {
  const place = SPEC.at('rootHost')
  if (text === '') throw new RefusedError(place, 'spec.rootHost is required')
  const isPlain = PLAIN_HOST.test(text) && text.includes('.')
  const isFit = text.length <= ROOT_HOST_CHARACTERS_MAX && (isPlain || ROOT_HOST.test(text))
  const name = isFit ? scanHost(text) : undefined
  if (name === undefined)
    throw new RefusedError(place, `spec.rootHost ${quote(text)} is not a domain name`)
  return withoutWildcard(name)
}

/** Returns the zone; undefined = the label is missing. */
function scanZoneLabel(label: string, rootHost: Uint8Array): Uint8Array | undefined {
  if (label === '') return undefined
  const zone = scanHost(label)
  if (zone === undefined) {
    throw new RefusedError(
      LABELS.at(ZONE_LABEL),
      `label ${ZONE_LABEL} ${quote(label)} is not a domain name`,
    )
  }
  if (!isSubdomain(rootHost, zone)) {
    throw new RefusedError(
      LABELS.at(ZONE_LABEL),
      `label ${ZONE_LABEL} names zone ${label}, but rootHost is not in that zone`,
    )
  }
  return zone
}

function scanEndpoints(spec: Mapping, scope: Scope, endpointsMax: number): Endpoint[] {
  const place = SPEC.at('endpoints')
  const endpoints = sequenceField(spec, 'endpoints', SPEC)
  if (endpoints.length > endpointsMax) {
    throw new RefusedError(place, `a record may have up to ${endpointsMax} endpoints`)
  }
  const scanned: Endpoint[] = []
  for (let index = 0; index < endpoints.length; index++) {
    const endpoint = endpoints[index]!
    if (scope.isAuthoritative && isRegistryText(endpoint)) continue
    const at = place.at(index)
    if (!isMapping(endpoint)) throw new RefusedError(at, 'an endpoint must be a mapping')
    scanned.push(scanEndpoint(endpoint, at, scope))
  }
  return scanned
}

function scanEndpoint(endpoint: Mapping, place: FieldPlace, scope: Scope): Endpoint {
  const dnsName = stringField(endpoint, 'dnsName', place)
  const owner = scanOwner(dnsName, place, scope)
  const typeText = stringField(endpoint, 'recordType', place)
  const type = RECORD_TYPES.get(typeText)
  if (type === undefined) {
    const types = [...RECORD_TYPES.keys()].join(' ')
    const message = `endpoint ${dnsName}: recordType ${quote(typeText)} must be one of ${types}${didYouMean(typeText, RECORD_TYPES.keys())}`
    throw new RefusedError(place.at('recordType'), message)
  }
  const setIdentifier = scanSetIdentifier(endpoint, place)
  const { weight, codes, isDefault, point } = scanSteeringProperties(endpoint, setIdentifier, place)
  return {
    owner,
    type,
    ttlSeconds: scanTtl(endpoint, place, scope),
    setIdentifier,
    weight,
    codes,
    isDefault,
    point,
    rdata: scanTargets(endpoint, type, place, scope),
    probeAt: scanProbeAt(endpoint, place),
    aliasOf: undefined,
  }
}

function scanOwner(text: string, place: FieldPlace, scope: Scope): Uint8Array {
  if (text === '') throw new RefusedError(place.at('dnsName'), 'dnsName is required')
  const owner = scanHost(text)
  if (owner === undefined)
    throw new RefusedError(place.at('dnsName'), `dnsName ${quote(text)} is not a domain name`)
  if (scope.allowsNamesOutside && !scope.isLocalForm) return owner
  // Compares whole labels: a text suffix would accept badk.example.com in k.example.com.
  const bound = scope.isLocalForm ? scanHost(KDRNT)! : scope.rootHost
  if (!isSubdomain(owner, bound)) {
    throw new RefusedError(
      place.at('dnsName'),
      `invalid endpoint discovered ${text} all endpoints should be equal to or end with the rootHost ${scope.rootHostText}`,
    )
  }
  return owner
}

function scanSetIdentifier(endpoint: Mapping, place: FieldPlace): string {
  const text = stringField(endpoint, 'setIdentifier', place)
  if (text.length <= SET_IDENTIFIER_CHARACTERS_MAX) return text
  const message = `setIdentifier may have up to ${SET_IDENTIFIER_CHARACTERS_MAX} characters`
  throw new RefusedError(place.at('setIdentifier'), message)
}

function scanTtl(endpoint: Mapping, place: FieldPlace, scope: Scope): number {
  const ttl = field(endpoint, 'recordTTL')
  if (ttl === undefined) return scope.isLocalForm ? 0 : TTL_DEFAULT_SECONDS
  const text = scalarField(endpoint, 'recordTTL', place)
  const isFit = typeof ttl === 'number' && Number.isInteger(ttl) && ttl >= 0
  if (!isFit || ttl > TTL_MAX_SECONDS) {
    const message = `recordTTL must be an integer from 0 to ${TTL_MAX_SECONDS}, got ${quote(text)}`
    throw new RefusedError(place.at('recordTTL'), message)
  }
  return ttl
}

function scanTargets(
  endpoint: Mapping,
  type: number,
  place: FieldPlace,
  scope: Scope,
): Uint8Array[] {
  const list = place.at('targets')
  const dnsName = stringField(endpoint, 'dnsName', place)
  const given = sequenceField(endpoint, 'targets', place)
  // Operators merge the CNAMEs of several owners into one endpoint with several targets. The first
  // target has always been served.
  const isName = type === RRType.CNAME || type === ALIAS_TYPE
  const targets = isName && scope.isAuthoritative ? given.slice(0, 1) : given
  if (targets.length === 0) throw new RefusedError(list, `endpoint ${dnsName} has no targets`)
  if (targets.length > TARGETS_MAX) {
    throw new RefusedError(list, `an endpoint may have up to ${TARGETS_MAX} targets`)
  }
  if (isName && targets.length > 1) {
    const what = `${printRecordType(type)} must have one`
    throw new RefusedError(list, `endpoint ${dnsName} has several targets; a ${what}`)
  }
  const rdata = targets.map((target, index) => {
    if (typeof target !== 'string')
      throw new RefusedError(list.at(index), 'a target must be a string')
    const scanned = scanTarget(type, target)
    if (typeof scanned !== 'string') return scanned
    throw new RefusedError(list.at(index), `endpoint ${dnsName} target ${quote(target)} ${scanned}`)
  })
  // The 2025 operator wrote the strings of one metadata record as separate targets.
  if (!scope.isLocalForm || type !== RRType.TXT) return rdata
  const joined = joinStrings(rdata)
  if (joined.length <= RDATA_OCTETS_MAX) return [joined]
  throw new RefusedError(list, `endpoint ${dnsName} has more strings than a record can contain`)
}

/** Joins TXT rdata. It is a sequence of strings, so the octets are concatenated. */
function joinStrings(rdata: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(rdata))
}
