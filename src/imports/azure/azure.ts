import { InputError } from '../../base/errors.ts'
import { printName } from '../../dns/name/name.ts'
import { scanAddress } from '../../dns/text/address.ts'
import { isMapping } from '../../records/validate/fields.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import type { ImportFormat } from '../import-format.ts'
import { endpointDocument } from '../imported-endpoint.ts'
import type { HealthCheckDocument, ImportedHosts } from '../imported-hosts.ts'
import { parseJson } from '../parse-json.ts'
import { type AzureEndpoint, type AzureProfile, readAzureProfiles } from './azure-profile.ts'
import { locationOfAzureRegion } from './azure-regions.ts'

/** How an endpoint of a profile is chosen. */
interface Steering {
  readonly weight?: number
  readonly geoCodes?: readonly string[]
  readonly isDefault?: boolean
  readonly location?: string | undefined
}

/** The groups of countries that Azure has beside continents. Only the countries are listed by ISO 3166-1 here. */
const MIDDLE_EAST = 'AE BH IL IQ IR JO KW LB OM PS QA SA SY YE'.split(' ')
/** The zone of all profiles. */
const DOMAIN = 'trafficmanager.net'
const MONITORED = ['HTTP', 'HTTPS', 'TCP']

/** Profiles of Azure Traffic Manager. */
export const AZURE: ImportFormat = {
  word: 'azure',
  files:
    'Traffic Manager profiles as JSON, of `az network traffic-manager profile list` or of a template',
  read: (files, hosts, { zone }) => {
    const profiles = files.flatMap((file) => {
      const { name } = file
      const found = readAzureProfiles(parseJson(file), name)
      if (found.length > 0) return found
      throw new InputError({ file: name, line: 1 }, 'the file has no profile of Traffic Manager')
    })
    const suffix = zone === undefined ? undefined : printName(zone).replace(/\.$/, '')
    const imports = new ProfileImport(profiles, suffix, hosts)
    for (const profile of profiles) imports.add(profile)
  },
}

class ProfileImport {
  readonly #profiles: readonly AzureProfile[]
  readonly #zone: string | undefined
  readonly #hosts: ImportedHosts

  /** `zone`: the hosts are in this zone; undefined = they keep their names in trafficmanager.net. */
  constructor(profiles: readonly AzureProfile[], zone: string | undefined, hosts: ImportedHosts) {
    this.#profiles = profiles
    this.#zone = zone
    this.#hosts = hosts
  }

  add(profile: AzureProfile): void {
    const { place, name, method } = profile
    if (!profile.isEnabled) {
      this.#hosts.note(place, `profile ${name} not imported: it is disabled`)
      return
    }
    const host = this.#hostOf(profile)
    if (host === '') {
      this.#hosts.note(place, `profile ${name} not imported: it has no dnsConfig.relativeName`)
      return
    }
    const inUse = profile.endpoints.filter((endpoint) => this.#isUsable(endpoint))
    const steering = steeringOf(method, inUse)
    if (steering === undefined) {
      this.#hosts.note(
        place,
        `profile ${name} not imported: ${method || 'no'} routing has no equivalent`,
      )
      return
    }
    for (const endpoint of inUse) {
      this.#addEndpoint(
        profile,
        { host, nameType: this.#nameTypeOf(inUse) },
        endpoint,
        steering(endpoint),
      )
    }
    if (method === 'MultiValue' && profile.maxReturn > 0)
      this.#hosts.annotate(host, 'sextant.io/answers', String(profile.maxReturn), place)
    if (method === 'Priority') this.#order(host, inUse, place)
    this.#check(profile, host)
  }

  #hostOf({ relativeName, fqdn }: AzureProfile): string {
    if (relativeName === '') return fqdn
    return `${relativeName.toLowerCase()}.${this.#zone ?? DOMAIN}`
  }

  #isUsable({ isEnabled, name, target, targetResourceId, place }: AzureEndpoint): boolean {
    if (!isEnabled) this.#hosts.note(place, `endpoint ${name} not imported: it is disabled`)
    else if (target === '' && this.#childOf(targetResourceId) === undefined) {
      this.#hosts.note(place, `endpoint ${name} not imported: its target is in none of the files`)
    } else return true
    return false
  }

  /** The profile that a nested endpoint leads to. */
  #childOf(targetResourceId: string): AzureProfile | undefined {
    const [, name] = /\/trafficmanagerprofiles\/([^/]+)$/.exec(targetResourceId) ?? []
    return this.#profiles.find((profile) => profile.name.toLowerCase() === name)
  }

  #targetOf({ target, targetResourceId }: AzureEndpoint): string {
    const child = this.#childOf(targetResourceId)
    return child === undefined ? target : this.#hostOf(child)
  }

  /** The type of names as targets: beside addresses, a CNAME record is not possible. */
  #nameTypeOf(endpoints: readonly AzureEndpoint[]): string {
    const hasAddress = endpoints.some((one) => scanAddress(this.#targetOf(one)) !== undefined)
    return hasAddress ? 'ALIAS' : 'CNAME'
  }

  /** `nameType`: of an endpoint whose target is a name. */
  #addEndpoint(
    { ttlSeconds }: AzureProfile,
    { host, nameType }: { readonly host: string; readonly nameType: string },
    endpoint: AzureEndpoint,
    steering: Steering,
  ): void {
    const { place, name } = endpoint
    for (const other of endpoint.others)
      this.#hosts.note(place, `${other} of ${name} has no equivalent`)
    const target = this.#targetOf(endpoint)
    const geoCodes = steering.geoCodes?.flatMap((code) => this.#codesOf(code, endpoint))
    const document = endpointDocument({
      ...{ host, ttlSeconds, ...steering },
      ...(geoCodes === undefined ? {} : { geoCodes }),
      type: addressTypeOf(target) ?? nameType,
      targets: [target],
      setIdentifier: name,
    })
    this.#hosts.add(document, place)
    this.#noteSubnets(endpoint)
    if (steering.location === undefined && 'location' in steering) {
      const region = endpoint.region === '' ? 'no endpointLocation' : `region ${endpoint.region}`
      this.#hosts.note(place, `${name}: ${region}: add the property location`)
    }
  }

  /** A geo code of Azure in our codes. The default is no code. */
  #codesOf(code: string, { place }: AzureEndpoint): readonly string[] {
    if (code === 'GEO-AP') return ['GEO-OC']
    if (code !== 'GEO-ME') return [code]
    this.#hosts.note(place, `GEO-ME is imported as ${MIDDLE_EAST.join(' ')}`)
    return MIDDLE_EAST
  }

  /** Networks are named in the Corefile, not in DNSRecords. */
  #noteSubnets({ name, subnets, place }: AzureEndpoint): void {
    for (const { first, last, scope } of subnets) {
      const line =
        typeof scope === 'number'
          ? `net ${first}/${scope} ${netOf(name)}`
          : `net CIDR ${netOf(name)}, for each network of ${first}-${last}`
      this.#hosts.note(place, `add to the directive geoip: ${line}`)
    }
  }

  /** The order of more than two endpoints. Two are a weight and a standby. */
  #order(host: string, endpoints: readonly AzureEndpoint[], place: string): void {
    const names = byPriority(endpoints).map(({ name }) => name)
    if (names.length < 3) return
    this.#hosts.annotate(host, 'sextant.io/failover', `*: ${names.join(', ')}`, place)
  }

  #check({ monitor, place }: AzureProfile, host: string): void {
    const { protocol, port, path, intervalInSeconds, toleratedNumberOfFailures } = monitor
    const { expectedStatusCodeRanges, customHeaders } = monitor
    if (typeof protocol !== 'string' || !MONITORED.includes(protocol.toUpperCase())) return
    const kind = protocol.toUpperCase()
    const isHttp = kind !== 'TCP'
    const statuses = isHttp ? statusesOf(expectedStatusCodeRanges) : ''
    const check: HealthCheckDocument = {
      protocol: kind,
      ...(typeof port === 'number' ? { port } : {}),
      ...(isHttp && typeof path === 'string' && path !== '' ? { path } : {}),
      interval: `${typeof intervalInSeconds === 'number' ? intervalInSeconds : 30}s`,
      failureThreshold:
        typeof toleratedNumberOfFailures === 'number' ? Math.max(1, toleratedNumberOfFailures) : 3,
      ...(isHttp ? { expectedStatus: statuses || '200' } : {}),
    }
    this.#hosts.check(host, check, `${place}.monitorConfig`)
    if (Array.isArray(customHeaders) && customHeaders.length > 0)
      this.#hosts.note(
        `${place}.monitorConfig`,
        'customHeaders: store them in a Secret, and name it in additionalHeadersRef',
      )
  }
}

/** How the endpoints of a method are chosen; undefined = in a way that has no equivalent. */
function steeringOf(
  method: string,
  endpoints: readonly AzureEndpoint[],
): ((endpoint: AzureEndpoint) => Steering) | undefined {
  switch (method) {
    case 'Weighted':
      return ({ weight }) => ({ weight })
    case 'Priority': {
      const [first] = byPriority(endpoints)
      return (endpoint) => ({ weight: endpoint === first ? 1 : 0 })
    }
    case 'Performance':
      return ({ region }) => ({ weight: 1, location: locationOfAzureRegion(region) })
    case 'Geographic':
      return ({ geoCodes }) => {
        const isDefault = geoCodes.includes('WORLD')
        return { geoCodes: geoCodes.filter((code) => code !== 'WORLD'), isDefault }
      }
    case 'Subnet':
      return ({ subnets, name }) =>
        subnets.length === 0 ? { isDefault: true } : { geoCodes: [netOf(name)] }
    case 'MultiValue':
      return () => ({})
    default:
      return undefined
  }
}

function byPriority(endpoints: readonly AzureEndpoint[]): readonly AzureEndpoint[] {
  return endpoints.toSorted((a, b) => a.priority - b.priority)
}

/** The geo code of the networks of an endpoint. */
function netOf(name: string): string {
  return `NET-${name
    .toUpperCase()
    .replace(/[^0-9A-Z_-]/g, '-')
    .slice(0, 63)}`
}

function addressTypeOf(target: string): 'A' | 'AAAA' | undefined {
  const address = scanAddress(target)
  if (address === undefined) return undefined
  return address.family === 1 ? 'A' : 'AAAA'
}

/** `[{ min, max }]` as `expectedStatus` has it; '' = not given. */
function statusesOf(ranges: YamlValue | undefined): string {
  if (!Array.isArray(ranges)) return ''
  return ranges
    .filter(isMapping)
    .map(({ min, max }) => (min === max ? `${min}` : `${min}-${max}`))
    .join(', ')
}
