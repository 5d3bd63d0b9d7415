import { didYouMean, nearestName } from '../../base/nearest.ts'
import { isSubdomain } from '../../dns/name/name.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import type { DnsRecord } from '../dns-record.ts'
import { HEALTH_CHECK_DEFAULTS } from '../health-check.ts'
import { hasNamesOutside } from '../names-outside.ts'
import { SITES_ANNOTATION } from '../site-facts.ts'
import { isDerivedRecord } from './dns-record.ts'
import type { FieldProblem } from './fields.ts'
import { isMapping, quote } from './fields.ts'
import { scanHost } from './names.ts'
import { PROBE_PROPERTIES } from './probe-properties.ts'
import { findKind } from './resource.ts'
import { SETTING_NAMES, SETTING_PREFIX } from './settings.ts'
import { findUnknownFields } from './unknown-fields.ts'
import { findUnusable } from './unusable.ts'

/** The settings, and what operators read and write. */
const KNOWN_ANNOTATIONS: ReadonlySet<string> = new Set([
  ...SETTING_NAMES,
  'sextant.io/let-go',
  SITES_ANNOTATION,
])
/** Properties that decide which clients get an endpoint. */
export const STEERING_PROPERTIES: readonly string[] = ['weight', 'geo-code', 'default', 'location']
const PROPERTIES: readonly string[] = [...STEERING_PROPERTIES, ...PROBE_PROPERTIES]

type Mapping = { readonly [key: string]: YamlValue }

/** A part of a resource that this server does not read, or that no client can use. */
export interface IgnoredPart extends FieldProblem {
  /**
   * True for a field that the kind does not have, an unknown name with our prefix, and a property that is nearly one of
   * ours. Other parts may be for other programs.
   */
  readonly isUnknown: boolean
  /** What the ready page and the metrics count it as. */
  readonly kind: 'ignored-record' | 'ignored-part'
}

/** Where a resource is. Only an operator reads some fields, and it reads no manifest. */
type Origin = 'manifest' | 'cluster'

/**
 * Finds what this server does not read in a DNSRecord or DNSHealthCheckProbe: unknown fields, properties of endpoints,
 * and annotations of ours; and endpoints that no client can use. `resource`: also one that is refused. `record`:
 * undefined = it is refused.
 */
export function findIgnored(
  resource: YamlValue,
  record?: DnsRecord,
  origin: Origin = 'cluster',
): IgnoredPart[] {
  if (!isMapping(resource)) return []
  const kind = findKind(resource.kind) ?? 'DNSRecord'
  const unknown = findUnknownFields(resource, kind)
  const others: FieldProblem[] = []
  if (kind === 'DNSRecord') findUnread(resource, unknown, others)
  if (record !== undefined && hasNamesOutside(record)) {
    others.push(...findNamesOutside(resource, record))
  }
  if (record !== undefined) others.push(...findUnusable(endpointsOf(resource), record))
  if (record !== undefined && origin === 'manifest') others.push(...findIdleDelegate(resource))
  if (record?.isWildcardHost === true) others.push(...findIdleCheck(resource, record))
  if (unknown.length + others.length === 0) return []
  return [
    ...unknown.map((problem) => ignoredPart(problem, 'ignored-part', true)),
    ...others.map((problem) => ignoredPart(problem, 'ignored-part')),
  ]
}

function endpointsOf({ spec }: Mapping): readonly YamlValue[] {
  return isMapping(spec) && Array.isArray(spec.endpoints) ? spec.endpoints : []
}

/** Records with `delegate` are combined by the operators of clusters. */
function findIdleDelegate({ spec }: Mapping): FieldProblem[] {
  if (!isMapping(spec) || spec.delegate !== true) return []
  const message =
    'delegate has no effect in a manifest, because only operators read it: the endpoints are served as those of any record; remove it'
  return [{ path: ['spec', 'delegate'], message }]
}

/** Finds a health check that sends the host name (HTTP, gRPC): a wildcard is no host name. */
function findIdleCheck(
  { spec, metadata }: Mapping,
  { healthCheck }: Pick<DnsRecord, 'healthCheck'>,
): FieldProblem[] {
  if (!isMapping(spec) || !isMapping(spec.healthCheck)) return []
  if (healthCheck !== undefined || isDerived(metadata)) return []
  const protocol = spec.healthCheck.protocol ?? HEALTH_CHECK_DEFAULTS.protocol
  const message = `healthCheck has no effect: rootHost ${spec.rootHost} is a wildcard, so ${protocol} has no host name to send; use TCP or DNS, or a DNSHealthCheckProbe with a hostname`
  return [{ path: ['spec', 'healthCheck'], message }]
}

/** Each name is reported once, at its first endpoint. */
function findNamesOutside({ spec }: Mapping, { rootHost }: DnsRecord): FieldProblem[] {
  if (!isMapping(spec) || !Array.isArray(spec.endpoints)) return []
  const found = new Map<string, FieldProblem>()
  for (const [index, endpoint] of spec.endpoints.entries()) {
    if (!isMapping(endpoint) || typeof endpoint.dnsName !== 'string') continue
    const { dnsName } = endpoint
    const owner = scanHost(dnsName)
    if (owner === undefined || isSubdomain(owner, rootHost) || found.has(dnsName)) continue
    const message = `${dnsName} is outside of the rootHost ${spec.rootHost}: it is served, but operators refuse the record, and other sites do not get it`
    found.set(dnsName, { path: ['spec', 'endpoints', index, 'dnsName'], message })
  }
  return [...found.values()]
}

export function ignoredPart(
  { path, message }: FieldProblem,
  kind: IgnoredPart['kind'],
  isUnknown = false,
): IgnoredPart {
  return { path, message, kind, isUnknown }
}

/**
 * Finds annotations and properties that have no effect. `unknown` receives those that no program reads, `others` those
 * that are probably a mistake.
 */
function findUnread(
  { metadata, spec }: Mapping,
  unknown: FieldProblem[],
  others: FieldProblem[],
): void {
  if (isMapping(metadata)) unknown.push(...findInMetadata(metadata))
  if (!isMapping(spec) || !Array.isArray(spec.endpoints)) return
  const isProbed = isMapping(spec.healthCheck) || isDerived(metadata)
  for (let index = 0; index < spec.endpoints.length; index++) {
    const endpoint = spec.endpoints[index]
    if (!isMapping(endpoint)) continue
    const { providerSpecific } = endpoint
    if (!Array.isArray(providerSpecific)) continue
    findInProperties(providerSpecific, index, isProbed, unknown, others)
  }
}

function isDerived(metadata: YamlValue | undefined): boolean {
  return isMapping(metadata) && isMapping(metadata.labels) && isDerivedRecord(metadata.labels)
}

/** Returns annotations with our prefix, or nearly with it, that no program reads, and settings that are labels. */
function findInMetadata({ annotations, labels }: Mapping): FieldProblem[] {
  const unknown = isMapping(annotations) ? Object.keys(annotations).filter(isUnknownSetting) : []
  const moved = isMapping(labels) ? SETTING_NAMES.filter((name) => name in labels) : []
  return [
    ...unknown.map((name) => {
      const message = `annotation ${quote(name)} is unknown and is ignored; the known ones are ${SETTING_NAMES.join(', ')}${didYouMean(name, SETTING_NAMES)}`
      return { path: ['metadata', 'annotations', name], message }
    }),
    ...moved.map((name) => {
      const message = `label ${quote(name)} is ignored; write it as an annotation`
      return { path: ['metadata', 'labels', name], message }
    }),
  ]
}

function isUnknownSetting(name: string): boolean {
  if (KNOWN_ANNOTATIONS.has(name)) return false
  if (name.startsWith(SETTING_PREFIX)) return true
  return name.includes('/') && nearestName(name, SETTING_NAMES) !== undefined
}

/** `endpoint`: its index. */
function findInProperties(
  properties: readonly YamlValue[],
  endpoint: number,
  isProbed: boolean,
  unknown: FieldProblem[],
  others: FieldProblem[],
): void {
  let hasWeight = false
  const pathOf = (index: number) => ['spec', 'endpoints', endpoint, 'providerSpecific', index]
  for (let index = 0; index < properties.length; index++) {
    const property = properties[index]
    if (!isMapping(property)) continue
    const name = String(property.name)
    if (!PROPERTIES.includes(name)) {
      if (isOfAnotherProvider(name)) continue
      const isOurs = name.startsWith(SETTING_PREFIX) || nearestName(name, PROPERTIES) !== undefined
      const message = `property ${quote(name)} is unknown and is ignored; the known ones are ${PROPERTIES.join(', ')}${didYouMean(name, PROPERTIES)}`
      ;(isOurs ? unknown : others).push({ path: pathOf(index), message })
      continue
    }
    const message =
      !isProbed && PROBE_PROPERTIES.includes(name)
        ? `property ${name} has no effect here: the record has no healthCheck`
        : ignoredReason(name, String(property.value ?? ''), hasWeight)
    hasWeight ||= name === 'weight'
    if (message !== '') others.push({ path: pathOf(index), message })
  }
}

/** As external-dns names the properties of providers: `aws/weight`. */
function isOfAnotherProvider(name: string): boolean {
  return name.includes('/') && !name.startsWith(SETTING_PREFIX)
}

/** Returns why a known property has no effect; '' = it has. `hasWeight`: a property before it is a weight. */
function ignoredReason(name: string, value: string, hasWeight: boolean): string {
  if (name === 'default' && value !== 'true' && value !== 'false') {
    return `property default must be true or false: ${quote(value)} is ignored`
  }
  return name === 'weight' && hasWeight ? 'a second weight replaces the first' : ''
}
