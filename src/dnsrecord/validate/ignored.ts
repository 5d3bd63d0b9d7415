import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import type { FieldProblem } from '../dns-record.ts'
import { SITES_ANNOTATION } from '../site-facts.ts'
import { isDerivedRecord } from './dns-record.ts'
import { isMapping, quote } from './fields.ts'
import { PROBE_PROPERTIES } from './probe-properties.ts'
import { SETTING_NAMES, SETTING_PREFIX } from './settings.ts'

/** Fields of an external-dns endpoint. */
const ENDPOINT_FIELDS: ReadonlySet<string> = new Set([
  'dnsName',
  'labels',
  'providerSpecific',
  'recordTTL',
  'recordType',
  'setIdentifier',
  'targets',
])
/** The settings, and what operators read and write. */
const KNOWN_ANNOTATIONS: ReadonlySet<string> = new Set([
  ...SETTING_NAMES,
  'sextant.io/let-go',
  SITES_ANNOTATION,
])
/** Properties that decide which clients get an endpoint. */
export const STEERING_PROPERTIES: readonly string[] = ['weight', 'geo-code', 'default', 'location']
const PROPERTIES: readonly string[] = [...STEERING_PROPERTIES, ...PROBE_PROPERTIES]

/**
 * Finds fields and properties of a DNSRecord's endpoints, and annotations of ours, that this server
 * does not read. Other providers may read them, so that is no fault, but it may be a mistake.
 * `record`: a valid one.
 */
export function findIgnored(record: YamlValue): FieldProblem[] {
  if (!isMapping(record)) return []
  const { metadata, spec } = record
  const found = isMapping(metadata) ? findInAnnotations(metadata.annotations) : []
  if (!isMapping(spec) || !Array.isArray(spec.endpoints)) return found
  const isProbed = isMapping(spec.healthCheck) || isDerived(metadata)
  for (const [index, endpoint] of spec.endpoints.entries()) {
    if (!isMapping(endpoint)) continue
    found.push(...findInEndpoint(endpoint, ['spec', 'endpoints', index], isProbed))
  }
  return found
}

function isDerived(metadata: YamlValue | undefined): boolean {
  return isMapping(metadata) && isMapping(metadata.labels) && isDerivedRecord(metadata.labels)
}

function findInAnnotations(annotations: YamlValue | undefined): FieldProblem[] {
  if (!isMapping(annotations)) return []
  return Object.keys(annotations)
    .filter((name) => name.startsWith(SETTING_PREFIX) && !KNOWN_ANNOTATIONS.has(name))
    .map((name) => {
      const message = `annotation ${quote(name)} is unknown and is ignored; the known ones are ${SETTING_NAMES.join(', ')}`
      return { path: ['metadata', 'annotations', name], message }
    })
}

function findInEndpoint(
  endpoint: { readonly [key: string]: YamlValue },
  path: readonly (string | number)[],
  isProbed: boolean,
): FieldProblem[] {
  const found: FieldProblem[] = []
  for (const field of Object.keys(endpoint)) {
    if (ENDPOINT_FIELDS.has(field)) continue
    const message = `${quote(field)} is not a field of an endpoint and is ignored`
    found.push({ path: [...path, field], message })
  }
  const { providerSpecific } = endpoint
  if (!Array.isArray(providerSpecific)) return found
  const seen = new Set<string>()
  for (const [index, property] of providerSpecific.entries()) {
    if (!isMapping(property)) continue
    const name = String(property.name)
    const message =
      !isProbed && PROBE_PROPERTIES.includes(name)
        ? `property ${name} has no effect here: the record has no healthCheck`
        : ignoredReason(name, String(property.value ?? ''), seen)
    if (message !== '') found.push({ path: [...path, 'providerSpecific', index], message })
  }
  return found
}

/** Returns why a property has no effect; '' = it has. `seen`: names of the properties before it. */
function ignoredReason(name: string, value: string, seen: Set<string>): string {
  if (!PROPERTIES.includes(name)) {
    return `property ${quote(name)} is unknown and is ignored; the known ones are ${PROPERTIES.join(', ')}`
  }
  if (name === 'default' && value !== 'true' && value !== 'false') {
    return `property default must be true or false: ${quote(value)} is ignored`
  }
  if (name === 'weight' && seen.has(name)) return 'a second weight replaces the first'
  seen.add(name)
  return ''
}
