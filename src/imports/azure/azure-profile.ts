import { isMapping } from '../../records/validate/fields.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'

type Mapping = { readonly [key: string]: YamlValue }

/** A Traffic Manager profile, as JSON of the command `az` or of the REST API. */
export interface AzureProfile {
  readonly name: string
  /** Its first label in trafficmanager.net. */
  readonly relativeName: string
  /** In lower case; '' = unknown. */
  readonly fqdn: string
  readonly ttlSeconds: number | undefined
  readonly isEnabled: boolean
  /** Such as `Weighted`. */
  readonly method: string
  /** Of MultiValue: how many endpoints an answer has; 0 = not given. */
  readonly maxReturn: number
  readonly monitor: Mapping
  readonly endpoints: readonly AzureEndpoint[]
  /** File and path in it. */
  readonly place: string
}

export interface AzureEndpoint {
  readonly name: string
  /** An address or a name; '' = not given. */
  readonly target: string
  /** In lower case; '' = none. */
  readonly targetResourceId: string
  readonly isEnabled: boolean
  readonly weight: number
  /** 0 = not given. */
  readonly priority: number
  /** Name of a region; '' = not given. */
  readonly region: string
  readonly geoCodes: readonly string[]
  readonly subnets: readonly Mapping[]
  /** What it has that no DNSRecord has, by the names of Azure. */
  readonly others: readonly string[]
  readonly place: string
}

const PROFILE_TYPE = 'microsoft.network/trafficmanagerprofiles'
/** Fields of an endpoint without an equivalent. */
const OTHERS = [
  'customHeaders',
  'minChildEndpoints',
  'minChildEndpointsIPv4',
  'minChildEndpointsIPv6',
]

/**
 * Returns the profiles of a JSON document: one profile, an array, `{ "value": […] }` of the REST API, or the
 * `resources` of a template. Fields of another type count as missing.
 */
export function readAzureProfiles(document: YamlValue, file: string): readonly AzureProfile[] {
  const { items, path } = itemsOf(document)
  return items.flatMap((item, i) => {
    const place = `${file}: ${path === undefined ? '.' : `${path}[${i}]`}`
    return isMapping(item) && isProfile(item) ? [profileOf(item, place)] : []
  })
}

/** `path`: undefined = the document itself is the item. */
function itemsOf(document: YamlValue): { items: readonly YamlValue[]; path: string | undefined } {
  if (Array.isArray(document)) return { items: document, path: '' }
  if (isMapping(document)) {
    for (const name of ['value', 'resources']) {
      const items = document[name]
      if (Array.isArray(items)) return { items, path: `.${name}` }
    }
  }
  return { items: [document], path: undefined }
}

function isProfile(item: Mapping): boolean {
  const type = text(item, 'type').toLowerCase()
  return type === PROFILE_TYPE || (type === '' && text(bodyOf(item), 'trafficRoutingMethod') !== '')
}

/** The REST API has the fields in `properties`, `az` beside the name. */
function bodyOf(item: Mapping): Mapping {
  const { properties } = item
  return isMapping(properties) ? { ...properties, name: item.name ?? '' } : item
}

function profileOf(item: Mapping, place: string): AzureProfile {
  const body = bodyOf(item)
  const dns = mapping(body, 'dnsConfig')
  const base = 'properties' in item ? `${place}.properties` : place
  return {
    name: text(body, 'name'),
    relativeName: text(dns, 'relativeName'),
    fqdn: text(dns, 'fqdn').toLowerCase(),
    ttlSeconds: number(dns, 'ttl'),
    isEnabled: isOn(body, 'profileStatus'),
    method: text(body, 'trafficRoutingMethod'),
    maxReturn: number(body, 'maxReturn') ?? 0,
    monitor: mapping(body, 'monitorConfig'),
    endpoints: list(body, 'endpoints').map((endpoint, i) => {
      return endpointOf(endpoint, `${base.replace(/\.$/, '')}.endpoints[${i}]`)
    }),
    place,
  }
}

function endpointOf(item: Mapping, place: string): AzureEndpoint {
  const body = bodyOf(item)
  const others = OTHERS.filter((name) => {
    const value = body[name] ?? null
    return Array.isArray(value) ? value.length > 0 : value !== null && value !== 0
  })
  return {
    name: text(body, 'name'),
    target: text(body, 'target').toLowerCase().replace(/\.$/, ''),
    targetResourceId: text(body, 'targetResourceId').toLowerCase(),
    isEnabled: isOn(body, 'endpointStatus'),
    weight: number(body, 'weight') ?? 1,
    priority: number(body, 'priority') ?? 0,
    region: text(body, 'endpointLocation'),
    geoCodes: texts(body, 'geoMapping'),
    subnets: list(body, 'subnets'),
    others: text(body, 'alwaysServe') === 'Enabled' ? [...others, 'alwaysServe'] : others,
    place,
  }
}

function isOn(parent: Mapping, name: string): boolean {
  return text(parent, name) !== 'Disabled'
}

function text(parent: Mapping, name: string): string {
  const value = parent[name]
  return typeof value === 'string' ? value : ''
}

function number(parent: Mapping, name: string): number | undefined {
  const value = parent[name]
  return typeof value === 'number' ? value : undefined
}

function mapping(parent: Mapping, name: string): Mapping {
  const value = parent[name]
  return isMapping(value) ? value : {}
}

function list(parent: Mapping, name: string): readonly Mapping[] {
  const value = parent[name]
  return Array.isArray(value) ? value.filter(isMapping) : []
}

function texts(parent: Mapping, name: string): readonly string[] {
  const value = parent[name]
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
}
