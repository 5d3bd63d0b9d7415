import { RRType } from '../../dns/iana/types.ts'
import { isSubdomain } from '../../dns/name/name.ts'
import {
  type DnsRecord,
  ENDPOINTS_MAX,
  type Endpoint,
  TARGETS_MAX,
  TTL_DEFAULT_SECONDS,
  TTL_MAX_SECONDS,
} from '../dns-record.ts'
import type { YamlValue } from '../yaml/scan-block-yaml.ts'
import {
  field,
  isMapping,
  mappingField,
  quote,
  RefusedError,
  sequenceField,
  stringField,
} from './fields.ts'
import { scanHost, withoutWildcard } from './names.ts'
import { scanSteeringProperties } from './steering-properties.ts'
import { RECORD_TYPES, scanTarget } from './target.ts'

type Mapping = { readonly [key: string]: YamlValue }
type Path = readonly (string | number)[]

const TYPE_LABEL = 'kuadrant.io/type'
const AUTHORITATIVE_LABEL = 'kuadrant.io/authoritative-record'
const ZONE_LABEL = 'kuadrant.io/coredns-zone-name'
/** The pattern of the CustomResourceDefinition. */
const ROOT_HOST = /^(?:[\w\-.~:/?#[\]@!$&'()*+,;=]+)\.(?:[\w\-.~:/?#[\]@!$&'()*+,;=]+)$/
/** Nearly every root host, at a fraction of the time. */
const PLAIN_HOST = /^[\w*][\w.*-]*\w$/
const ROOT_HOST_CHARACTERS_MAX = 255
/** Zone of the gateway-local form. */
const KDRNT = 'kdrnt'

/** What the endpoints of one record are checked against. */
interface Scope {
  readonly rootHost: Uint8Array
  readonly rootHostText: string
  /** Already in gateway-local form: metadata names beside the root host, strings as targets. */
  readonly isLocalForm: boolean
}

/** Checks a DNSRecord. Throws RefusedError at its first fault. */
export function validateDnsRecord(
  resource: Mapping,
  identity: { readonly namespace: string; readonly name: string },
): DnsRecord {
  const metadata = mappingField(resource, 'metadata', ['metadata'])
  const labels = mappingField(metadata, 'labels', ['metadata', 'labels'])
  const labelPath = ['metadata', 'labels', ZONE_LABEL]
  const zoneLabel = stringField(labels, ZONE_LABEL, labelPath).replace(/\.$/, '').toLowerCase()
  const spec = mappingField(resource, 'spec', ['spec'])
  const rootHostText = stringField(spec, 'rootHost', ['spec', 'rootHost'])
  const rootHost = scanRootHost(rootHostText)
  checkZoneLabel(zoneLabel, rootHost, labelPath)
  const scope: Scope = { rootHost, rootHostText, isLocalForm: zoneLabel === KDRNT }
  const created = Date.parse(stringField(metadata, 'creationTimestamp', ['metadata']))
  return {
    ...identity,
    zoneLabel,
    rootHost,
    isAggregate:
      field(labels, TYPE_LABEL) === 'merged' || field(labels, AUTHORITATIVE_LABEL) === 'true',
    createdSeconds: Number.isNaN(created) ? 0 : Math.max(0, Math.floor(created / 1000)),
    endpoints: scanEndpoints(spec, scope),
  }
}

function scanRootHost(text: string): Uint8Array {
  const path = ['spec', 'rootHost']
  if (text === '') throw new RefusedError(path, 'spec.rootHost is required')
  const isPlain = PLAIN_HOST.test(text) && text.includes('.')
  const isFit = text.length <= ROOT_HOST_CHARACTERS_MAX && (isPlain || ROOT_HOST.test(text))
  const name = isFit ? scanHost(text) : undefined
  if (name === undefined)
    throw new RefusedError(path, `spec.rootHost ${quote(text)} is not a domain name`)
  return withoutWildcard(name)
}

function checkZoneLabel(label: string, rootHost: Uint8Array, path: Path): void {
  if (label === '') return
  const zone = scanHost(label)
  if (zone === undefined) {
    throw new RefusedError(path, `label ${ZONE_LABEL} ${quote(label)} is not a domain name`)
  }
  if (!isSubdomain(rootHost, zone)) {
    throw new RefusedError(
      path,
      `label ${ZONE_LABEL} names zone ${label}, which rootHost is not in`,
    )
  }
}

function scanEndpoints(spec: Mapping, scope: Scope): Endpoint[] {
  const path = ['spec', 'endpoints']
  const endpoints = sequenceField(spec, 'endpoints', path)
  if (endpoints.length > ENDPOINTS_MAX) {
    throw new RefusedError(path, `a record may have up to ${ENDPOINTS_MAX} endpoints`)
  }
  return endpoints.map((endpoint, index) => {
    const at = [...path, index]
    if (!isMapping(endpoint)) throw new RefusedError(at, 'an endpoint must be a mapping')
    return scanEndpoint(endpoint, at, scope)
  })
}

function scanEndpoint(endpoint: Mapping, path: Path, scope: Scope): Endpoint {
  const dnsName = stringField(endpoint, 'dnsName', [...path, 'dnsName'])
  const owner = scanOwner(dnsName, [...path, 'dnsName'], scope)
  const typeText = stringField(endpoint, 'recordType', [...path, 'recordType'])
  const type = RECORD_TYPES.get(typeText)
  if (type === undefined) {
    const types = [...RECORD_TYPES.keys()].join(' ')
    const message = `endpoint ${dnsName}: recordType ${quote(typeText)} is none of ${types}`
    throw new RefusedError([...path, 'recordType'], message)
  }
  const setIdentifier = stringField(endpoint, 'setIdentifier', [...path, 'setIdentifier'])
  const { weight, codes, isDefault } = scanSteeringProperties(endpoint, setIdentifier, path)
  return {
    owner,
    type,
    ttlSeconds: scanTtl(endpoint, [...path, 'recordTTL'], scope),
    setIdentifier,
    weight,
    codes,
    isDefault,
    rdata: scanTargets(endpoint, type, path, scope),
  }
}

function scanOwner(text: string, path: Path, scope: Scope): Uint8Array {
  if (text === '') throw new RefusedError(path, 'dnsName is required')
  const owner = scanHost(text)
  if (owner === undefined)
    throw new RefusedError(path, `dnsName ${quote(text)} is not a domain name`)
  // Label by label: a bare suffix check would let badk.example.com into k.example.com.
  const isInside = scope.isLocalForm ? scanHost(KDRNT)! : scope.rootHost
  if (!isSubdomain(owner, isInside)) {
    throw new RefusedError(
      path,
      `invalid endpoint discovered ${text} all endpoints should be equal to or end with the rootHost ${scope.rootHostText}`,
    )
  }
  return owner
}

function scanTtl(endpoint: Mapping, path: Path, scope: Scope): number {
  const ttl = field(endpoint, 'recordTTL')
  if (ttl === undefined) return scope.isLocalForm ? 0 : TTL_DEFAULT_SECONDS
  const isFit = typeof ttl === 'number' && Number.isInteger(ttl) && ttl >= 0
  if (!isFit || ttl > TTL_MAX_SECONDS) {
    const message = `recordTTL must be an integer from 0 to ${TTL_MAX_SECONDS}, got ${quote(String(ttl))}`
    throw new RefusedError(path, message)
  }
  return ttl
}

function scanTargets(endpoint: Mapping, type: number, path: Path, scope: Scope): Uint8Array[] {
  const listPath = [...path, 'targets']
  const dnsName = String(field(endpoint, 'dnsName'))
  const targets = sequenceField(endpoint, 'targets', listPath)
  if (targets.length === 0) throw new RefusedError(listPath, `endpoint ${dnsName} has no targets`)
  if (targets.length > TARGETS_MAX) {
    throw new RefusedError(listPath, `an endpoint may have up to ${TARGETS_MAX} targets`)
  }
  if (type === RRType.CNAME && targets.length > 1) {
    throw new RefusedError(listPath, `endpoint ${dnsName} has several targets: a CNAME has one`)
  }
  const rdata = targets.map((target, index) => {
    const at = [...listPath, index]
    if (typeof target !== 'string') throw new RefusedError(at, 'a target must be a string')
    const scanned = scanTarget(type, target)
    if (typeof scanned !== 'string') return scanned
    throw new RefusedError(at, `endpoint ${dnsName} target ${quote(target)} ${scanned}`)
  })
  // The 2025 operator wrote the strings of one metadata record as targets.
  return scope.isLocalForm && type === RRType.TXT ? [joinStrings(rdata)] : rdata
}

/** TXT rdata is a row of strings, so joining records joins their octets. */
function joinStrings(rdata: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(rdata))
}
