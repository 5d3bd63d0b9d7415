import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import type { FieldProblem } from '../dns-record.ts'
import { isMapping, quote } from './fields.ts'

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
const PROPERTIES: readonly string[] = ['weight', 'geo-code', 'default']

/**
 * Finds fields and properties of a DNSRecord's endpoints that this server does not read. Other
 * providers may read them, so that is no fault, but it may be a mistake. `record`: a valid one.
 */
export function findIgnored(record: YamlValue): FieldProblem[] {
  const spec = isMapping(record) ? record.spec : undefined
  const endpoints = isMapping(spec) ? spec.endpoints : undefined
  if (!Array.isArray(endpoints)) return []
  return endpoints.flatMap((endpoint: YamlValue, index) => {
    return isMapping(endpoint) ? findInEndpoint(endpoint, ['spec', 'endpoints', index]) : []
  })
}

function findInEndpoint(
  endpoint: { readonly [key: string]: YamlValue },
  path: readonly (string | number)[],
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
    const message = ignoredReason(String(property.name), String(property.value ?? ''), seen)
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
