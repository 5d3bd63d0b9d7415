import { didYouMean } from '../../base/nearest.ts'
import { type ApiObject, textOf } from '../../kube/api.ts'
import { type Endpoint, SET_IDENTIFIER_CHARACTERS_MAX } from '../../records/dns-record.ts'
import { isMapping, quote, RefusedError } from '../../records/validate/fields.ts'
import { scanHealthCheck } from '../../records/validate/health-check.ts'
import { STEERING_PROPERTIES } from '../../records/validate/ignored.ts'
import { HEALTH_CHECK } from '../../records/validate/known-fields.ts'
import { PROBE_PROPERTIES } from '../../records/validate/probe-properties.ts'
import { SETTING_KEYS, SETTING_PREFIX, scanSettings } from '../../records/validate/settings.ts'
import { parseOneDocument, YamlProblem } from '../../yaml/parse-document.ts'
import {
  type AnnotatedProperty,
  annotationsOf,
  type ExternalDnsAnnotations,
  placeOf,
} from './external-dns-annotations.ts'
import type { OnProblem } from './object-kind.ts'
import { checkProperty, type EndpointProperty, ownName } from './provider-properties.ts'

/** What the annotations of an object set for its records. */
export interface ObjectSettings {
  /** Of each endpoint without one; '' = none. */
  readonly setIdentifier: string
  /** Of each endpoint, not mapped: `mapProviderProperties` does that. */
  readonly properties: readonly AnnotatedProperty[]
  /** Annotations of each record. */
  readonly annotations: Readonly<Record<string, string>>
  /** `spec.healthCheck` of each record; undefined = none. */
  readonly healthCheck: Readonly<Record<string, unknown>> | undefined
}

export const HEALTH_CHECK_KEY = 'health-check'
/** Bound on the YAML of a health check. */
const HEALTH_CHECK_CHARACTERS_MAX = 4096

const PROPERTY_KEYS: readonly string[] = [...STEERING_PROPERTIES, ...PROBE_PROPERTIES]
const NAMES: readonly string[] = [...PROPERTY_KEYS, ...SETTING_KEYS, HEALTH_CHECK_KEY].map(
  (key) => SETTING_PREFIX + key,
)

/**
 * Reads the annotations `sextant.io/…` of an object, and those of external-dns that are properties of endpoints.
 * `identifiers`: set identifiers that the endpoints of the object have themselves. Throws RefusedError if an
 * annotation is invalid. `onProblem` receives what is ignored.
 */
export function readObjectSettings(
  object: ApiObject,
  externalDns: ExternalDnsAnnotations,
  onProblem: OnProblem,
  identifiers: readonly string[] = [],
): ObjectSettings {
  const texts = textsOf(object, onProblem)
  const own = PROPERTY_KEYS.flatMap((name) => propertyOf(name, texts.get(name)))
  const others: AnnotatedProperty[] = []
  for (const property of externalDns.properties()) {
    const name = ownName(property.name)
    if (name === undefined || PROPERTY_KEYS.includes(name)) {
      if (name === undefined || !texts.has(name)) others.push(property)
    } else if (!texts.has(name)) texts.set(name, property.value)
  }
  const setIdentifier = setIdentifierOf(object, externalDns, [...own, ...others])
  const annotations: Record<string, string> = {}
  for (const key of SETTING_KEYS) {
    const text = texts.get(key)
    if (text !== undefined) annotations[SETTING_PREFIX + key] = text
  }
  const known = [setIdentifier, ...identifiers].map((one) => ({ setIdentifier: one }))
  scanSettings({ annotations }, known satisfies Pick<Endpoint, 'setIdentifier'>[])
  const checkText = texts.get(HEALTH_CHECK_KEY)
  return {
    setIdentifier,
    properties: [...others, ...own],
    annotations,
    healthCheck: checkText === undefined ? undefined : scanCheckText(checkText, onProblem),
  }
}

/** The annotations with our prefix, by the name behind it. */
function textsOf(object: ApiObject, onProblem: OnProblem): Map<string, string> {
  const texts = new Map<string, string>()
  for (const [name, value] of Object.entries(annotationsOf(object))) {
    if (!name.startsWith(SETTING_PREFIX)) continue
    if (!NAMES.includes(name)) {
      const message = `annotation ${quote(name)} is unknown and is ignored${didYouMean(name, NAMES)}`
      onProblem({ path: placeOf(name).path(), message })
      continue
    }
    if (typeof value !== 'string') throw new RefusedError(placeOf(name), `${name} must be a string`)
    texts.set(name.slice(SETTING_PREFIX.length), value)
  }
  return texts
}

function propertyOf(name: string, value: string | undefined): AnnotatedProperty[] {
  if (value === undefined) return []
  const annotation = SETTING_PREFIX + name
  checkProperty({ name, value }, placeOf(annotation))
  return [{ name, value, annotation }]
}

/** Several objects may have endpoints of one name: only different set identifiers unite them. */
function setIdentifierOf(
  object: ApiObject,
  externalDns: ExternalDnsAnnotations,
  properties: readonly EndpointProperty[],
): string {
  const given = externalDns.text('set-identifier') ?? ''
  if (given.length > SET_IDENTIFIER_CHARACTERS_MAX) {
    const message = `a set identifier may have up to ${SET_IDENTIFIER_CHARACTERS_MAX} characters`
    throw new RefusedError(externalDns.placeOf('set-identifier'), message)
  }
  const isNeeded = given === '' && properties.some(({ name }) => isSteering(name))
  return isNeeded ? derivedIdentifier(object) : given
}

/** Returns the set identifier of endpoints that need one and have none. */
export function derivedIdentifier({ metadata }: ApiObject): string {
  return `${textOf(metadata, 'namespace')}/${textOf(metadata, 'name')}`
}

/** Every property of Route 53 that decides needs a set identifier there too. */
function isSteering(name: string): boolean {
  const own = ownName(name)
  if (own !== undefined) return STEERING_PROPERTIES.includes(own)
  return /^aws\/(?:weight|region|failover|geo|multi)/.test(name)
}

/**
 * Reads YAML of `spec.healthCheck`, as in the annotation. Throws RefusedError. `onProblem` receives what is ignored.
 */
export function scanCheckText(
  text: string,
  onProblem: OnProblem,
): Readonly<Record<string, unknown>> {
  const name = SETTING_PREFIX + HEALTH_CHECK_KEY
  const place = placeOf(name)
  if (text.length > HEALTH_CHECK_CHARACTERS_MAX) {
    const message = `${name} may have up to ${HEALTH_CHECK_CHARACTERS_MAX} characters`
    throw new RefusedError(place, message)
  }
  const value = parseOneDocument(text)
  if (value instanceof YamlProblem) {
    throw new RefusedError(place, `${name} line ${value.line}: ${value.message}`)
  }
  if (!isMapping(value)) {
    const message = `${name} must be YAML of spec.healthCheck, such as {protocol: HTTP, port: 8080, path: /ready}`
    throw new RefusedError(place, message)
  }
  const known = Object.keys(HEALTH_CHECK)
  const check: Record<string, unknown> = {}
  for (const [key, part] of Object.entries(value)) {
    if (known.includes(key)) check[key] = part
    else {
      const message = `${name}: ${quote(key)} is not a field of healthCheck and is ignored${didYouMean(key, known)}`
      onProblem({ path: place.path(), message })
    }
  }
  try {
    const { protocol } = scanHealthCheck(value, place)
    if (protocol !== 'EXEC') return check
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error
    throw new RefusedError(place, `${name}: ${error.problem.message}`)
  }
  throw new RefusedError(place, `${name}: only manifests may have protocol EXEC`)
}
