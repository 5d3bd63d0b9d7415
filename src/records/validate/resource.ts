import { nearestName } from '../../base/nearest.ts'
import { scanAddress } from '../../dns/text/address.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import {
  API_GROUP,
  API_VERSION,
  type HealthProbe,
  type OtherResource,
  type Resource,
  recordKey,
} from '../dns-record.ts'
import { type ValidateOptions, validateDnsRecord } from './dns-record.ts'
import {
  field,
  isMapping,
  LABELS,
  METADATA,
  mappingField,
  quote,
  RESOURCE,
  RefusedError,
  SPEC,
  sequenceField,
  stringField,
} from './fields.ts'
import { scanHealthCheck } from './health-check.ts'
import { scanHost } from './names.ts'
import { scanTestAddress } from './probe-properties.ts'
import { printUnhealthy } from './probe-status.ts'

type Mapping = { readonly [key: string]: YamlValue }

/** What a server serves. */
export const SERVED: ValidateOptions = { allowsNamesOutside: true }

const PROBE_OWNER_LABEL = 'kuadrant.io/health-probes-owner'
const KINDS = ['DNSRecord', 'DNSHealthCheckProbe'] as const
const DEFAULT_NAMESPACE = 'default'
/** RFC 1123 names, as in Kubernetes. */
const RESOURCE_NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/
const NAMESPACE_NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const OTHER: OtherResource = { kind: 'other', name: '' }
const NO_KIND = 'no kind'

/**
 * Reads one resource of a manifest. Ignores other kinds, empty documents, and resources with a
 * deletionTimestamp, whose owner wants them removed. Never throws on bad input.
 */
export function validateResource(value: YamlValue, options: ValidateOptions = {}): Resource {
  if (value === null) return OTHER
  if (!isMapping(value)) {
    const what = Array.isArray(value) ? 'a list' : 'a single value'
    const message = `a resource must be a mapping, got ${what}`
    return { kind: 'refused', key: '', problem: { path: RESOURCE.path(), message } }
  }
  const { kind, apiVersion = null } = value
  const ours = findKind(kind)
  if (ours === undefined || isOfAnotherGroup(apiVersion)) return otherResource(value)
  let key = ''
  try {
    const identity = scanIdentity(value)
    const isRecord = ours === 'DNSRecord'
    key = `${isRecord ? '' : `${ours} `}${recordKey(identity.namespace, identity.name)}`
    if (kind !== ours) {
      throw new RefusedError(
        RESOURCE.at('kind'),
        `kind must be ${ours}, not ${quote(String(kind))}`,
      )
    }
    if (apiVersion !== API_VERSION) {
      const found = typeof apiVersion === 'string' ? `, not ${quote(apiVersion)}` : ''
      throw new RefusedError(RESOURCE.at('apiVersion'), `apiVersion must be ${API_VERSION}${found}`)
    }
    const metadata = mappingField(value, 'metadata', RESOURCE)
    if (field(metadata, 'deletionTimestamp') !== undefined) return OTHER
    if (isRecord) return { kind: 'record', record: validateDnsRecord(value, identity, options) }
    return { kind: 'probe', probe: validateProbe(value, identity) }
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error
    return { kind: 'refused', key, problem: error.problem }
  }
}

/**
 * Returns the kind that is meant. A kind in other letter case is refused; otherwise it would be
 * ignored silently.
 */
export function findKind(kind: YamlValue | undefined): (typeof KINDS)[number] | undefined {
  if (typeof kind !== 'string') return undefined
  return KINDS.find((ours) => ours === kind || ours.toLowerCase() === kind.toLowerCase())
}

/** True for a kind that is not read, does not resemble one that is, and is no list. */
export function isOtherKind(kind: string): boolean {
  return findKind(kind) === undefined && !isList({ kind }) && nearestName(kind, KINDS) === undefined
}

function otherResource(resource: Mapping): OtherResource {
  const { kind, apiVersion, items } = resource
  const name = typeof kind === 'string' ? kind : NO_KIND
  const version = typeof apiVersion === 'string' ? apiVersion : ''
  const isOfOurs = !isOfAnotherGroup(version)
  if (!isOfOurs) {
    const [group = ''] = version.split('/')
    const isNear = findKind(kind) !== undefined && nearestName(group, [API_GROUP]) !== undefined
    return isNear ? nearly(name, 'apiVersion', version, API_VERSION) : { kind: 'other', name }
  }
  const nearest = nearestName(name, Array.isArray(items) ? [...KINDS, 'List'] : KINDS)
  if (nearest !== undefined) return nearly(name, 'kind', name, nearest)
  if (name !== NO_KIND || version === '') return { kind: 'other', name }
  const message = `the kind is missing, and the object is ignored; add kind: ${KINDS[0]}`
  return { kind: 'other', name, problem: { path: ['apiVersion'], message } }
}

function nearly(name: string, field: string, value: string, nearest: string): OtherResource {
  const message = `the object is ignored: ${field} ${quote(value)} is unknown; did you mean ${nearest}?`
  return { kind: 'other', name, problem: { path: [field], message } }
}

/**
 * Other API groups have a DNSRecord too. A DNSRecord without a group counts as Kuadrant's, and is
 * refused.
 */
function isOfAnotherGroup(apiVersion: YamlValue): boolean {
  if (typeof apiVersion !== 'string' || apiVersion === '') return false
  return apiVersion !== API_GROUP && !apiVersion.startsWith(`${API_GROUP}/`)
}

/** Returns the resources in one document: the document itself, or the items of a list. */
export function itemsOf(document: YamlValue): readonly YamlValue[] {
  if (!isMapping(document)) return [document]
  const { items } = document
  return isList(document) && Array.isArray(items) ? items : [document]
}

/** True for a list of resources. Its `items` are the resources if that is an array. */
export function isList({ kind }: Mapping): boolean {
  return typeof kind === 'string' && kind.endsWith('List')
}

function scanIdentity(resource: Mapping): { namespace: string; name: string } {
  const metadata = mappingField(resource, 'metadata', RESOURCE)
  const name = stringField(metadata, 'name', METADATA)
  if (name === '') throw new RefusedError(METADATA.at('name'), 'metadata.name is required')
  if (!RESOURCE_NAME.test(name)) {
    throw new RefusedError(
      METADATA.at('name'),
      `metadata.name ${quote(name)} is not a valid resource name`,
    )
  }
  const namespace = stringField(metadata, 'namespace', METADATA) || DEFAULT_NAMESPACE
  if (!NAMESPACE_NAME.test(namespace)) {
    throw new RefusedError(
      METADATA.at('namespace'),
      `metadata.namespace ${quote(namespace)} is not a valid namespace name`,
    )
  }
  return { namespace, name }
}

function validateProbe(
  resource: Mapping,
  identity: { readonly namespace: string; readonly name: string },
): HealthProbe {
  const metadata = mappingField(resource, 'metadata', RESOURCE)
  const spec = mappingField(resource, 'spec', RESOURCE)
  const status = mappingField(resource, 'status', RESOURCE)
  const address = stringField(spec, 'address', SPEC)
  if (address === '') throw new RefusedError(SPEC.at('address'), 'spec.address is required')
  const hostname = stringField(spec, 'hostname', SPEC)
  if (hostname !== '' && scanHost(hostname) === undefined && scanAddress(hostname) === undefined) {
    throw new RefusedError(SPEC.at('hostname'), `hostname ${quote(hostname)} is not a domain name`)
  }
  const testAddress = stringField(spec, 'testAddress', SPEC)
  const healthy = field(status, 'healthy')
  return {
    ...identity,
    recordName: scanProbeOwner(metadata),
    address: address.toLowerCase().replace(/\.$/, ''),
    testAddress:
      testAddress === '' ? '' : scanTestAddress(testAddress, SPEC.at('testAddress'), 'testAddress'),
    isDown: healthy === false,
    downReason:
      healthy === false ? printUnhealthy(recordKey(identity.namespace, identity.name), status) : '',
    hostname: hostname.toLowerCase().replace(/\.$/, ''),
    // A probe with a status needs no settings.
    check: healthy === undefined ? scanHealthCheck(spec, SPEC) : undefined,
  }
}

/**
 * Returns the name in the owner reference if it exists. For a long name, the label has a hash only.
 */
function scanProbeOwner(metadata: Mapping): string {
  const references = sequenceField(metadata, 'ownerReferences', METADATA)
  const owner = references.find((r) => isMapping(r) && r.kind === 'DNSRecord')
  if (isMapping(owner) && typeof owner.name === 'string') return owner.name
  const name = stringField(mappingField(metadata, 'labels', METADATA), PROBE_OWNER_LABEL, LABELS)
  if (name === '') throw new RefusedError(LABELS, `label ${PROBE_OWNER_LABEL} is required`)
  return name
}
