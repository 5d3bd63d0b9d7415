import { scanDuration } from '../../base/duration.ts'
import { didYouMean } from '../../base/nearest.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import {
  CHECK_FIELDS,
  CHECK_KINDS,
  HEALTH_CHECK_DEFAULTS,
  type HealthCheck,
  INTERVAL_MAX_MS,
  INTERVAL_MIN_MS,
  PATH_CHARACTERS_MAX,
  PROBE_PROTOCOLS,
  type ProbeProtocol,
  THRESHOLD_MAX,
} from '../health-check.ts'
import { type FieldPlace, field, mappingField, quote, RefusedError, stringField } from './fields.ts'

type Mapping = { readonly [key: string]: YamlValue }

/** The pattern in the CustomResourceDefinition, extended to short paths such as `/`. */
const PATH = /^[/?][\w\-.~:/?#[\]@!$&'()*+,;=%]*$/
const SECRET_NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/

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
    ...CHECK_KINDS[protocol].scan(spec, place),
  } as HealthCheck
}

function scanProtocol(spec: Mapping, place: FieldPlace): ProbeProtocol {
  const text = stringField(spec, 'protocol', place) || HEALTH_CHECK_DEFAULTS.protocol
  const protocol = PROBE_PROTOCOLS.find((known) => known === text)
  if (protocol !== undefined) return protocol
  const message = `protocol must be one of ${PROBE_PROTOCOLS.join(' ')}, got ${quote(text)}${didYouMean(text, PROBE_PROTOCOLS)}`
  throw new RefusedError(place.at('protocol'), message)
}

function checkFields(spec: Mapping, protocol: ProbeProtocol, place: FieldPlace): void {
  for (const name of CHECK_FIELDS) {
    if (field(spec, name) === undefined) continue
    const protocols = PROBE_PROTOCOLS.filter((one) => CHECK_KINDS[one].fields.includes(name))
    if (protocols.includes(protocol)) continue
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
