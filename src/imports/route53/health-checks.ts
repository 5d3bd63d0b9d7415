import { scanAddress } from '../../dns/text/address.ts'
import {
  FieldPlace,
  field,
  isMapping,
  mappingField,
  quote,
  RefusedError,
  scalarField,
  stringField,
} from '../../records/validate/fields.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import type { HealthCheckDocument } from '../imported-hosts.ts'

type Mapping = { readonly [key: string]: YamlValue }

/** A health check of Route 53. */
export interface Route53Check {
  /** Without the port. */
  readonly document: HealthCheckDocument
  readonly port: number
  /** What is probed: an address or a name; '' = unknown. */
  readonly address: string
  /** The host name in the request; '' = that of the record. */
  readonly hostName: string
  /** What acts in another way. */
  readonly notes: readonly string[]
}

const PROTOCOLS: ReadonlyMap<string, { readonly protocol: string; readonly port: number }> =
  new Map([
    ['HTTP', { protocol: 'HTTP', port: 80 }],
    ['HTTP_STR_MATCH', { protocol: 'HTTP', port: 80 }],
    ['HTTPS', { protocol: 'HTTPS', port: 443 }],
    ['HTTPS_STR_MATCH', { protocol: 'HTTPS', port: 443 }],
    ['TCP', { protocol: 'TCP', port: 0 }],
  ])
/** Any status of success or redirection is healthy. */
const EXPECTED_STATUS = '200-399'
const INTERVAL_SECONDS = 30
const THRESHOLD = 3

/** Reads an item of `HealthChecks`. Throws RefusedError if it has no equivalent; paths begin at the item. */
export function readHealthCheck(item: Mapping): Route53Check {
  const place = new FieldPlace('').at('HealthCheckConfig')
  const config = mappingField(item, 'HealthCheckConfig', new FieldPlace(''))
  const type = stringField(config, 'Type', place)
  const found = PROTOCOLS.get(type)
  if (found === undefined) {
    throw new RefusedError(
      place.at('Type'),
      `a health check of type ${quote(type)} has no equivalent`,
    )
  }
  for (const name of ['Inverted', 'Disabled']) {
    if (field(config, name) === true) {
      throw new RefusedError(place.at(name), `a health check that is ${name} has no equivalent`)
    }
  }
  const notes: string[] = []
  const threshold = scanNumber(config, 'FailureThreshold', place, THRESHOLD)
  // An address is down after one more failure than `failureThreshold`.
  if (threshold === 1)
    notes.push('an address is down after 2 failures in a row, not after the first')
  const address = stringField(config, 'IPAddress', place)
  const name = stringField(config, 'FullyQualifiedDomainName', place).replace(/\.$/, '')
  return {
    document: {
      protocol: found.protocol,
      ...httpFields(config, place, found.protocol),
      interval: `${scanNumber(config, 'RequestInterval', place, INTERVAL_SECONDS)}s`,
      failureThreshold: Math.max(1, threshold - 1),
      successThreshold: threshold,
    },
    port: scanNumber(config, 'Port', place, found.port),
    address: scanAddress(address) === undefined ? name : address,
    hostName: found.protocol === 'TCP' ? '' : name,
    notes,
  }
}

function httpFields(config: Mapping, place: FieldPlace, protocol: string): HealthCheckDocument {
  if (protocol === 'TCP') return {}
  const body = stringField(config, 'SearchString', place)
  return {
    path: stringField(config, 'ResourcePath', place) || '/',
    expectedStatus: EXPECTED_STATUS,
    ...(body === '' ? {} : { expectedBody: body }),
  }
}

function scanNumber(config: Mapping, name: string, place: FieldPlace, missing: number): number {
  const text = scalarField(config, name, place)
  if (text === '' && missing > 0) return missing
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new RefusedError(place.at(name), `${name} must be a number, got ${quote(text)}`)
}

/** The id of an item of `HealthChecks`; '' = it has none. */
export function idOf(item: YamlValue): string {
  return isMapping(item) && typeof item.Id === 'string' ? item.Id : ''
}
