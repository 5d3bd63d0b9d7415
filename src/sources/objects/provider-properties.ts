import { didYouMean, nearestName } from '../../base/nearest.ts'
import { scanAddress } from '../../dns/text/address.ts'
import { AWS_REGIONS, locationOfAwsRegion } from '../../records/aws-regions.ts'
import {
  FieldPlace,
  type FieldProblem,
  quote,
  RefusedError,
} from '../../records/validate/fields.ts'
import { STEERING_PROPERTIES } from '../../records/validate/ignored.ts'
import { PROBE_PROPERTIES, scanProbeAt } from '../../records/validate/probe-properties.ts'
import { SETTING_KEYS } from '../../records/validate/settings.ts'
import { scanSteeringProperties } from '../../records/validate/steering-properties.ts'

/** A property of an endpoint, as in `providerSpecific`. */
export interface EndpointProperty {
  readonly name: string
  readonly value: string
}

/** What decides, besides the properties, whether they have an equivalent. */
export interface PropertyScope {
  readonly recordType: string
  readonly targets: readonly string[]
  /** The record has a health check: it replaces those of other providers. */
  readonly hasHealthCheck: boolean
}

/** Properties of external-dns in Sextant's terms. */
interface MappedProperties {
  /** Those of a DNSRecord, each once. */
  readonly properties: readonly EndpointProperty[]
  /** Settings of the whole record, by the part of the annotation's name behind `sextant.io/`, each once. */
  readonly settings: readonly EndpointProperty[]
  /** ALIAS for a CNAME with `alias: "true"`; otherwise the type of the endpoint. */
  readonly recordType: string
  /** Properties without an effect that are probably a mistake. The path begins at the list of properties. */
  readonly problems: readonly FieldProblem[]
}

/** The endpoint cannot have the effect of its properties. */
interface RefusedProperties {
  /** The path begins at the list of properties. */
  readonly refused: FieldProblem
}

const ENDPOINT_PROPERTIES: readonly string[] = [...STEERING_PROPERTIES, ...PROBE_PROPERTIES]
/** Settings of a record that a property may have. */
const RECORD_SETTINGS: readonly string[] = [...SETTING_KEYS, 'health-check']
const OWN_NAMES: readonly string[] = [...ENDPOINT_PROPERTIES, ...RECORD_SETTINGS]
/** Our names may have one of these in front. external-dns keeps only `webhook/…` for a webhook. */
const OWN_PREFIXES: readonly string[] = ['webhook/sextant-', 'sextant/', 'webhook/']

const AWS = 'aws/'
/** Route 53 returns up to this many records of a multivalue answer. */
const MULTI_VALUE_ANSWERS = '8'
/** Continents of Route 53. */
const CONTINENT = /^(?:AF|AN|AS|EU|NA|OC|SA)$/
/** Types for which the property alias has a meaning. */
const ALIAS_TYPES: readonly string[] = ['A', 'AAAA', 'CNAME', 'ALIAS']
const ZERO = /^[+-]?0+$/

/** Properties of other providers that have no effect on answers, by their full names. */
const HARMLESS: ReadonlySet<string> = new Set([
  'aws/evaluate-target-health',
  'aws/hosted-zone-id',
  'aws/target-hosted-zone',
  'azure/tags',
  'azure/metadata-keys',
  'cloudflare/custom-hostname',
  'cloudflare/record-comment',
  'cloudflare/region-key',
  'cloudflare/tags',
  'coredns/group',
  'ibmcloud-vpc',
  'record-type',
  'scw/priority',
  'txt/force-update',
])
const HARMLESS_PREFIX = 'azure/metadata-'
/** `true` = the provider answers with addresses of its own proxies. */
const PROXIED: readonly string[] = ['cloudflare/proxied', 'ibmcloud-proxied']
/** Earlier names of `cloudflare/…`, also behind the name and the group of an annotation. */
const EARLIER_CLOUDFLARE = /^(?:[^/]+\/)?cloudflare-/

const AWS_NAMES: readonly string[] = [
  'aws/weight',
  'aws/region',
  'aws/failover',
  'aws/geolocation-continent-code',
  'aws/geolocation-country-code',
  'aws/geolocation-subdivision-code',
  'aws/geoproximity-region',
  'aws/geoproximity-bias',
  'aws/geoproximity-coordinates',
  'aws/geoproximity-local-zone-group',
  'aws/multi-value-answer',
  'aws/health-check-id',
  ...[...HARMLESS].filter((name) => name.startsWith(AWS)),
]

/**
 * Maps the properties of an endpoint of external-dns, of any of its providers, to those of Sextant. An own property
 * replaces those of other providers with the same meaning. Properties that have no effect on answers are left out.
 * A property that changes answers and has no equivalent refuses the endpoint. Mapped properties map to themselves.
 */
export function mapProviderProperties(
  given: readonly EndpointProperty[],
  scope: PropertyScope,
): MappedProperties | RefusedProperties {
  const mapping = new Mapping(given, scope)
  try {
    return mapping.map()
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error
    return { refused: error.problem }
  }
}

/** Place of the list of properties. */
const LIST = new FieldPlace('')

class Mapping {
  readonly #given: readonly EndpointProperty[]
  readonly #scope: PropertyScope
  /** Index of each property of another provider. */
  readonly #others = new Map<string, number>()
  readonly #properties = new Map<string, string>()
  readonly #settings = new Map<string, string>()
  readonly #problems: FieldProblem[] = []
  #recordType: string

  constructor(given: readonly EndpointProperty[], scope: PropertyScope) {
    this.#given = given
    this.#scope = scope
    this.#recordType = scope.recordType
  }

  map(): MappedProperties {
    for (const [index, { name, value }] of this.#given.entries()) {
      const own = ownName(name)
      if (own === undefined) this.#others.set(currentName(name), index)
      else if (RECORD_SETTINGS.includes(own)) this.#settings.set(own, value)
      else this.#set(own, value, index)
    }
    this.#mapWeight()
    this.#mapGeolocation()
    this.#mapLocation()
    this.#mapAnswers()
    this.#mapAlias()
    this.#checkProxies()
    for (const [name, index] of this.#others) this.#checkUnknown(name, index)
    const entries = (map: ReadonlyMap<string, string>) =>
      [...map].map(([name, value]) => ({ name, value }))
    return {
      properties: entries(this.#properties),
      settings: entries(this.#settings),
      recordType: this.#recordType,
      problems: this.#problems,
    }
  }

  /** Adds a property of ours. `index`: of the property that it is made from. */
  #set(name: string, value: string, index: number): void {
    checkProperty({ name, value }, this.#placeOf(index).at('value'))
    // Several geo codes are several properties, or a list in one.
    const before = name === 'geo-code' ? this.#properties.get(name) : undefined
    this.#properties.set(name, before === undefined ? value : `${before},${value}`)
  }

  #placeOf(index: number): FieldPlace {
    return LIST.at(index)
  }

  /** Removes a property of another provider. Returns it; undefined = it is not given. */
  #take(name: string): { readonly value: string; readonly index: number } | undefined {
    const index = this.#others.get(name)
    if (index === undefined) return undefined
    this.#others.delete(name)
    return { value: this.#given[index]!.value, index }
  }

  #refuse(index: number, message: string): never {
    throw new RefusedError(this.#placeOf(index).at('value'), message)
  }

  /** The primary has weight 1, and the secondary is a standby. */
  #mapWeight(): void {
    const hasOwn = this.#properties.has('weight')
    const weight = this.#take('aws/weight')
    const failover = this.#take('aws/failover')
    if (hasOwn) return
    if (weight !== undefined && failover !== undefined) {
      this.#refuse(failover.index, 'aws/failover and aws/weight exclude each other')
    }
    if (weight !== undefined) this.#set('weight', weight.value, weight.index)
    if (failover === undefined) return
    const { value, index } = failover
    if (value !== 'PRIMARY' && value !== 'SECONDARY') {
      this.#refuse(index, `aws/failover must be PRIMARY or SECONDARY, got ${quote(value)}`)
    }
    this.#set('weight', value === 'PRIMARY' ? '1' : '0', index)
  }

  #mapGeolocation(): void {
    const hasOwn = this.#properties.has('geo-code') || this.#properties.has('default')
    const continent = this.#take('aws/geolocation-continent-code')
    const country = this.#take('aws/geolocation-country-code')
    const subdivision = this.#take('aws/geolocation-subdivision-code')
    if (hasOwn) return
    if (continent !== undefined) {
      const other = country ?? subdivision
      if (other !== undefined) {
        this.#refuse(other.index, 'the code of a continent excludes that of a country')
      }
      if (!CONTINENT.test(continent.value)) {
        const message = `aws/geolocation-continent-code must be AF, AN, AS, EU, NA, OC or SA, got ${quote(continent.value)}`
        this.#refuse(continent.index, message)
      }
      this.#set('geo-code', `GEO-${continent.value}`, continent.index)
      return
    }
    if (subdivision !== undefined) {
      if (country?.value !== 'US') {
        const message = 'aws/geolocation-subdivision-code needs aws/geolocation-country-code US'
        this.#refuse(subdivision.index, message)
      }
      this.#set('geo-code', `US-${subdivision.value}`, subdivision.index)
      return
    }
    if (country === undefined) return
    if (!/^(?:\*|[A-Z]{2})$/.test(country.value)) {
      const message = `aws/geolocation-country-code must be two letters or *, got ${quote(country.value)}`
      this.#refuse(country.index, message)
    }
    this.#set('geo-code', country.value, country.index)
  }

  /** Latency and geoproximity both become the distance. */
  #mapLocation(): void {
    const hasOwn = this.#properties.has('location')
    const coordinates = this.#take('aws/geoproximity-coordinates')
    const region = this.#take('aws/geoproximity-region') ?? this.#take('aws/region')
    const zone = this.#take('aws/geoproximity-local-zone-group')
    const bias = this.#take('aws/geoproximity-bias')
    this.#take('aws/region')
    if (hasOwn) return
    if (bias !== undefined && !ZERO.test(bias.value)) {
      this.#refuse(bias.index, 'aws/geoproximity-bias has no equivalent: only the distance decides')
    }
    if (coordinates !== undefined) {
      this.#set('location', coordinates.value, coordinates.index)
    } else if (region !== undefined) {
      const location = locationOfAwsRegion(region.value)
      if (location === undefined) {
        const message = `the location of the region ${quote(region.value)} is unknown; write the property location${didYouMean(region.value, AWS_REGIONS)}`
        this.#refuse(region.index, message)
      }
      this.#set('location', location, region.index)
    } else if (zone !== undefined) {
      const message = `the location of the local zone group ${quote(zone.value)} is unknown; write the property location`
      this.#refuse(zone.index, message)
    }
  }

  #mapAnswers(): void {
    const many = this.#take('aws/multi-value-answer')
    // external-dns writes the property without a value.
    if (many === undefined || many.value === 'false' || this.#settings.has('answers')) return
    this.#settings.set('answers', MULTI_VALUE_ANSWERS)
  }

  #mapAlias(): void {
    const alias = this.#take('alias')
    const { recordType, targets } = this.#scope
    if (alias === undefined || alias.value === 'false' || !ALIAS_TYPES.includes(recordType)) return
    // Addresses need no alias.
    if (recordType !== 'ALIAS' && targets.every((target) => scanAddress(target) !== undefined))
      return
    if (alias.value !== 'true') {
      const message = `alias must be true or false, because an ALIAS has both A and AAAA, got ${quote(alias.value)}`
      this.#refuse(alias.index, message)
    }
    if (recordType !== 'CNAME' && recordType !== 'ALIAS') {
      this.#refuse(alias.index, `alias needs recordType CNAME, not ${quote(recordType)}`)
    }
    this.#recordType = 'ALIAS'
  }

  #checkProxies(): void {
    for (const name of PROXIED) {
      const proxied = this.#take(name)
      if (proxied === undefined || proxied.value === 'false') continue
      const message = `${name} has no equivalent: the answer would have the address behind the proxy`
      this.#refuse(proxied.index, message)
    }
    const check = this.#take('aws/health-check-id')
    if (check === undefined || this.#scope.hasHealthCheck || this.#settings.has('health-check')) {
      return
    }
    const message =
      'aws/health-check-id names a health check of Route 53; write the annotation sextant.io/health-check'
    this.#refuse(check.index, message)
  }

  #checkUnknown(name: string, index: number): void {
    if (HARMLESS.has(name) || name.startsWith(HARMLESS_PREFIX)) return
    const place = this.#placeOf(index).at('name')
    if (name.startsWith(AWS)) {
      const message = `property ${quote(name)} is unknown and may change answers${didYouMean(name, AWS_NAMES)}`
      throw new RefusedError(place, message)
    }
    const message = `property ${quote(name)} is unknown and is ignored${hintOf(name)}`
    this.#problems.push({ path: place.path(), message })
  }
}

/** Returns our name of a property; undefined = it belongs to another provider, or is unknown. */
export function ownName(name: string): string | undefined {
  const prefix = OWN_PREFIXES.find((one) => name.startsWith(one)) ?? ''
  const rest = name.slice(prefix.length)
  if (ENDPOINT_PROPERTIES.includes(rest)) return rest
  return prefix !== '' && RECORD_SETTINGS.includes(rest) ? rest : undefined
}

/** `; did you mean webhook/weight?`, or '' if no name of ours is near. */
function hintOf(name: string): string {
  const prefix = OWN_PREFIXES.find((one) => name.startsWith(one)) ?? ''
  const near = nearestName(name.slice(prefix.length), OWN_NAMES)
  if (near === undefined) return ''
  const needsPrefix = prefix === '' && RECORD_SETTINGS.includes(near)
  return `; did you mean ${needsPrefix ? 'sextant/' : prefix}${near}?`
}

function currentName(name: string): string {
  return name.replace(EARLIER_CLOUDFLARE, 'cloudflare/')
}

/** Throws RefusedError if the value of one of our properties is invalid. `place`: of the value. */
export function checkProperty(property: EndpointProperty, place: FieldPlace): void {
  const { name, value } = property
  if (name === 'default' && value !== 'true' && value !== 'false') {
    throw new RefusedError(place, `default must be true or false, got ${quote(value)}`)
  }
  const endpoint = { providerSpecific: [{ name, value }] }
  try {
    scanSteeringProperties(endpoint, '', LIST)
    scanProbeAt(endpoint, LIST)
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error
    throw new RefusedError(place, error.problem.message)
  }
}
