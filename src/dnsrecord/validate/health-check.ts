import { scanDuration } from '../../base/duration.ts'
import { didYouMean } from '../../base/nearest.ts'
import { Rcode } from '../../dns/iana/index.ts'
import { scanType } from '../../dns/iana/types.ts'
import { scanAddress } from '../../dns/text/address.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import {
  BODY_CHARACTERS_MAX,
  COMMAND_NAME,
  HEALTH_CHECK_DEFAULTS,
  type HealthCheck,
  INTERVAL_MAX_MS,
  INTERVAL_MIN_MS,
  PATH_CHARACTERS_MAX,
  PROBE_PROTOCOLS,
  type ProbeProtocol,
  STATUS_MAX,
  STATUS_MIN,
  STATUS_RANGES_MAX,
  type StatusRange,
  THRESHOLD_MAX,
} from '../health-check.ts'
import {
  type FieldPlace,
  field,
  mappingField,
  quote,
  RefusedError,
  scalarField,
  stringField,
} from './fields.ts'
import { scanHost } from './names.ts'

type Mapping = { readonly [key: string]: YamlValue }

/** The pattern in the CustomResourceDefinition, extended to short paths such as `/`. */
const PATH = /^[/?][\w\-.~:/?#[\]@!$&'()*+,;=%]*$/
const STATUS_RANGE = /^(\d{3})(?:-(\d{3}))?$/
/** Package and name of a gRPC service. */
const GRPC_SERVICE = /^[\w.-]{1,255}$/
/** A code of the header, without EDNS. */
const RCODE_MAX = 15
const SECRET_NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/

/** The protocols of the fields that other protocols do not have. */
const PROTOCOLS_OF: ReadonlyMap<string, readonly ProbeProtocol[]> = new Map([
  ['expectedStatus', ['HTTP', 'HTTPS']],
  ['expectedBody', ['HTTP', 'HTTPS']],
  ['service', ['GRPC', 'GRPCS']],
  ['query', ['DNS']],
  ['expectedRcode', ['DNS']],
  ['expectedAddress', ['DNS']],
  ['command', ['EXEC']],
])

/** Reads a health check. `place`: place of `spec`. Throws RefusedError at the first fault. */
export function scanHealthCheck(spec: Mapping, place: FieldPlace): HealthCheck {
  const defaults = HEALTH_CHECK_DEFAULTS
  const protocol = scanProtocol(spec, place)
  checkFields(spec, protocol, place)
  return {
    protocol,
    port: scanInteger(spec, 'port', place, { least: 1, most: 65_535, absent: defaults.port }),
    path: scanPath(spec, place),
    intervalMs: scanInterval(spec, place),
    failureThreshold: scanThreshold(spec, 'failureThreshold', place),
    successThreshold: scanThreshold(spec, 'successThreshold', place),
    headersSecret: scanSecretName(spec, place),
    allowsInsecureCertificate: field(spec, 'allowInsecureCertificate') === true,
    ...scanExpectedStatus(spec, place),
    ...scanExpectedBody(spec, place),
    ...scanGrpcService(spec, place),
    ...(protocol === 'DNS' ? scanDns(spec, place) : {}),
    ...(protocol === 'EXEC' ? { command: scanCommand(spec, place) } : {}),
  }
}

function scanProtocol(spec: Mapping, place: FieldPlace): ProbeProtocol {
  const text = stringField(spec, 'protocol', place) || HEALTH_CHECK_DEFAULTS.protocol
  const protocol = PROBE_PROTOCOLS.find((known) => known === text)
  if (protocol !== undefined) return protocol
  const message = `protocol must be one of ${PROBE_PROTOCOLS.join(' ')}, got ${quote(text)}${didYouMean(text, PROBE_PROTOCOLS)}`
  throw new RefusedError(place.at('protocol'), message)
}

function checkFields(spec: Mapping, protocol: ProbeProtocol, place: FieldPlace): void {
  for (const [name, protocols] of PROTOCOLS_OF) {
    if (field(spec, name) === undefined || protocols.includes(protocol)) continue
    const message = `${name} needs protocol ${protocols.join(' or ')}, not ${protocol}`
    throw new RefusedError(place.at(name), message)
  }
}

function scanPath(spec: Mapping, place: FieldPlace): string {
  const path = stringField(spec, 'path', place) || HEALTH_CHECK_DEFAULTS.path
  if (path.length <= PATH_CHARACTERS_MAX && PATH.test(path)) return path
  const message = `path must begin with / or ?, with at most ${PATH_CHARACTERS_MAX} characters and no spaces, got ${quote(path)}`
  throw new RefusedError(place.at('path'), message)
}

function scanInterval(spec: Mapping, place: FieldPlace): number {
  const text = stringField(spec, 'interval', place)
  if (text === '') return HEALTH_CHECK_DEFAULTS.intervalMs
  const interval = scanDuration(text)
  if (interval !== undefined && interval > 0) {
    return Math.min(Math.max(Math.round(interval), INTERVAL_MIN_MS), INTERVAL_MAX_MS)
  }
  const message = `interval must be a duration such as 30s or 5m, got ${quote(text)}`
  throw new RefusedError(place.at('interval'), message)
}

function scanThreshold(
  spec: Mapping,
  name: 'failureThreshold' | 'successThreshold',
  place: FieldPlace,
): number {
  const absent = HEALTH_CHECK_DEFAULTS[name]
  return scanInteger(spec, name, place, { least: 1, most: THRESHOLD_MAX, absent })
}

function scanInteger(
  spec: Mapping,
  name: string,
  place: FieldPlace,
  { least, most, absent }: { readonly least: number; readonly most: number; absent: number },
): number {
  const value = field(spec, name)
  if (value === undefined) return absent
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) {
    return value
  }
  throw new RefusedError(place.at(name), `${name} must be an integer from ${least} to ${most}`)
}

function scanSecretName(spec: Mapping, place: FieldPlace): string {
  const at = place.at('additionalHeadersRef')
  const reference = mappingField(spec, 'additionalHeadersRef', place)
  const name = stringField(reference, 'name', at)
  if (name === '' || SECRET_NAME.test(name)) return name
  throw new RefusedError(at.at('name'), `${quote(name)} is not a name of a Secret`)
}

function scanExpectedStatus(spec: Mapping, place: FieldPlace): Pick<HealthCheck, 'expectedStatus'> {
  const text = scalarField(spec, 'expectedStatus', place)
  if (text === '') return {}
  const ranges = text.split(',', STATUS_RANGES_MAX + 1).map((part) => scanStatusRange(part.trim()))
  const expectedStatus = ranges.filter((range) => range !== undefined)
  if (expectedStatus.length === ranges.length && ranges.length <= STATUS_RANGES_MAX) {
    return { expectedStatus }
  }
  const message = `expectedStatus must be a list of up to ${STATUS_RANGES_MAX} codes and ranges from ${STATUS_MIN} to ${STATUS_MAX}, such as "200, 301-308", got ${quote(text)}`
  throw new RefusedError(place.at('expectedStatus'), message)
}

function scanStatusRange(text: string): StatusRange | undefined {
  const [, from = '', to = from] = STATUS_RANGE.exec(text) ?? []
  const [first, last] = [Number(from), Number(to)]
  return first >= STATUS_MIN && last >= first && last <= STATUS_MAX ? { first, last } : undefined
}

function scanExpectedBody(spec: Mapping, place: FieldPlace): Pick<HealthCheck, 'expectedBody'> {
  const expectedBody = stringField(spec, 'expectedBody', place)
  if (expectedBody === '') return {}
  if (expectedBody.length <= BODY_CHARACTERS_MAX) return { expectedBody }
  const message = `expectedBody may have up to ${BODY_CHARACTERS_MAX} characters`
  throw new RefusedError(place.at('expectedBody'), message)
}

function scanGrpcService(spec: Mapping, place: FieldPlace): Pick<HealthCheck, 'grpcService'> {
  const grpcService = stringField(spec, 'service', place)
  if (grpcService === '') return {}
  if (GRPC_SERVICE.test(grpcService)) return { grpcService }
  const message = `service must be a name such as shop.v1.Cart, got ${quote(grpcService)}`
  throw new RefusedError(place.at('service'), message)
}

type DnsPart = Pick<HealthCheck, 'query' | 'expectedRcode' | 'expectedAddress'>

function scanDns(spec: Mapping, place: FieldPlace): DnsPart {
  // The default is also that of the CustomResourceDefinition, for HTTPS.
  if ((field(spec, 'port') ?? HEALTH_CHECK_DEFAULTS.port) === HEALTH_CHECK_DEFAULTS.port) {
    throw new RefusedError(place.at('port'), 'protocol DNS needs its port, such as port: 53')
  }
  return {
    query: scanQuery(spec, place),
    ...scanExpectedRcode(spec, place),
    ...scanExpectedAddress(spec, place),
  }
}

function scanQuery(spec: Mapping, place: FieldPlace): NonNullable<HealthCheck['query']> {
  const text = stringField(spec, 'query', place)
  const [name = '', typeText = '', ...rest] = text.trim().split(/\s+/)
  const type = scanType(typeText)
  if (rest.length === 0 && scanHost(name) !== undefined && type !== undefined) return { name, type }
  const message = `query must be a name and a type, such as "health.example.com A", got ${quote(text)}`
  throw new RefusedError(place.at('query'), message)
}

function scanExpectedRcode(spec: Mapping, place: FieldPlace): Pick<DnsPart, 'expectedRcode'> {
  const text = stringField(spec, 'expectedRcode', place)
  if (text === '') return {}
  const expectedRcode = new Map<string, number>(Object.entries(Rcode)).get(text)
  if (expectedRcode !== undefined && expectedRcode <= RCODE_MAX) return { expectedRcode }
  const message = `expectedRcode must be a code such as NOERROR or NXDOMAIN, got ${quote(text)}${didYouMean(text, Object.keys(Rcode))}`
  throw new RefusedError(place.at('expectedRcode'), message)
}

function scanExpectedAddress(spec: Mapping, place: FieldPlace): Pick<DnsPart, 'expectedAddress'> {
  const expectedAddress = stringField(spec, 'expectedAddress', place)
  if (expectedAddress === '') return {}
  if (scanAddress(expectedAddress) !== undefined) return { expectedAddress }
  const message = `expectedAddress ${quote(expectedAddress)} is not an IP address`
  throw new RefusedError(place.at('expectedAddress'), message)
}

function scanCommand(spec: Mapping, place: FieldPlace): string {
  const command = stringField(spec, 'command', place)
  if (COMMAND_NAME.test(command)) return command
  const message = `command must be a name that probe-exec defines in the Corefile, got ${quote(command)}`
  throw new RefusedError(place.at('command'), message)
}
