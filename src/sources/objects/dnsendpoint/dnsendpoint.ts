import { didYouMean } from '../../../base/nearest.ts'
import { type ApiObject, textOf } from '../../../kube/api.ts'
import {
  type EndpointDocument,
  type RecordDocument,
  recordDocument,
} from '../../../records/record-document.ts'
import {
  type FieldPlace,
  type FieldProblem,
  isMapping,
  RESOURCE,
  RefusedError,
  SPEC,
  sequenceField,
} from '../../../records/validate/fields.ts'
import { STEERING_PROPERTIES } from '../../../records/validate/ignored.ts'
import { SETTING_PREFIX } from '../../../records/validate/settings.ts'
import { RECORD_TYPES } from '../../../records/validate/target.ts'
import { ExternalDnsAnnotations } from '../external-dns-annotations.ts'
import { metadataOf } from '../host-record.ts'
import { itemsOf, textsOf } from '../object-fields.ts'
import { type OnProblem, UNNAMED_SET } from '../object-kind.ts'
import { type EndpointProperty, mapProviderProperties } from '../provider-properties.ts'
import {
  derivedIdentifier,
  HEALTH_CHECK_KEY,
  type ObjectSettings,
  readObjectSettings,
  scanCheckText,
} from '../settings-annotations.ts'
import { normalHost } from '../targets.ts'

/** Place of the properties in an endpoint. */
const PROPERTIES = RESOURCE.at('providerSpecific')
const SHIFT = `${SETTING_PREFIX}shift`
/** The set identifier in a shift. */
const SHIFT_TO = /(?:^|\s)to=(\S+)/

/** The parts of the record of one host. */
interface Host {
  /** Endpoints with equal keys differ in their targets only. */
  readonly endpoints: Map<string, EndpointDocument>
  /** Settings that endpoints of the host have as properties, by name. */
  readonly settings: Map<string, string>
}

/**
 * Makes the records of a DNSEndpoint, one for each host. An endpoint that has no equivalent is left out and reported.
 * Names and targets are not validated. Throws RefusedError if an annotation is invalid, or the object has not the form
 * of its kind.
 */
export function readDnsEndpoint(object: ApiObject, onProblem: OnProblem): RecordDocument[] {
  const externalDns = new ExternalDnsAnnotations(object)
  if (externalDns.isOfOther) return []
  const endpoints = endpointsOf(object)
  const identifiers = endpoints.map(({ endpoint }) => textOf(endpoint, 'setIdentifier'))
  const settings = readObjectSettings(object, externalDns, onProblem, identifiers)
  const hosts = new Map<string, Host>()
  for (const { endpoint, place } of endpoints) {
    const found = readEndpoint(object, endpoint, settings)
    for (const problem of found.problems) onProblem(under(place, problem))
    const { document } = found
    if (document === undefined) continue
    const host = hosts.get(document.dnsName) ?? { endpoints: new Map(), settings: new Map() }
    hosts.set(document.dnsName, host)
    addEndpoint(host, document)
    for (const setting of found.settings) {
      if (addSetting(host, setting)) continue
      const message = `another endpoint of ${document.dnsName} has another ${setting.name}, which counts`
      onProblem({ path: place.at('providerSpecific').path(), message })
    }
  }
  return [...hosts].map(([name, host]) => recordOf(object, name, host, settings, onProblem))
}

function endpointsOf({ spec }: ApiObject): { endpoint: ApiObject; place: FieldPlace }[] {
  const list = isMapping(spec) ? sequenceField(spec, 'endpoints', SPEC) : []
  return list.flatMap((endpoint, index) => {
    if (endpoint === null) return []
    const place = SPEC.at('endpoints').at(index)
    if (!isMapping(endpoint)) throw new RefusedError(place, 'an endpoint must be a mapping')
    return [{ endpoint, place }]
  })
}

/** What one endpoint gives. The paths of problems begin at the endpoint. */
interface FoundEndpoint {
  /** Undefined = it is refused. */
  readonly document: EndpointDocument | undefined
  readonly settings: readonly EndpointProperty[]
  readonly problems: readonly FieldProblem[]
}

function readEndpoint(
  object: ApiObject,
  endpoint: ApiObject,
  settings: ObjectSettings,
): FoundEndpoint {
  const dnsName = normalHost(textOf(endpoint, 'dnsName'))
  const recordType = textOf(endpoint, 'recordType')
  const refuse = ({ path, message }: FieldProblem): FoundEndpoint => {
    const problem = { path, message: `${recordType} of ${dnsName} is not served: ${message}` }
    return { document: undefined, settings: [], problems: [problem] }
  }
  if (!RECORD_TYPES.has(recordType)) {
    const types = [...RECORD_TYPES.keys()]
    const message = `recordType must be one of ${types.join(' ')}${didYouMean(recordType, types)}`
    return refuse({ path: ['recordType'], message })
  }
  const targets = textsOf(endpoint, 'targets')
  const given = itemsOf(endpoint, 'providerSpecific').map((one) => {
    return { name: textOf(one, 'name'), value: textOf(one, 'value') }
  })
  const hasHealthCheck = settings.healthCheck !== undefined
  const mapped = mapProviderProperties(given, { recordType, targets, hasHealthCheck })
  if ('refused' in mapped) return refuse(under(PROPERTIES, mapped.refused))
  const own = new Set(mapped.properties.map(({ name }) => name))
  // external-dns reads no annotations of DNSEndpoints: only ours count, and those of an endpoint come first.
  const common = settings.properties.filter(({ name, annotation }) => {
    return annotation.startsWith(SETTING_PREFIX) && !own.has(name)
  })
  const properties = [...mapped.properties, ...common.map(({ name, value }) => ({ name, value }))]
  const isSteered = properties.some(({ name }) => STEERING_PROPERTIES.includes(name))
  const derived = isSteered ? derivedIdentifier(object) : UNNAMED_SET
  const setIdentifier = textOf(endpoint, 'setIdentifier') || settings.setIdentifier || derived
  const { recordTTL } = endpoint
  return {
    document: {
      dnsName,
      recordType: mapped.recordType,
      targets,
      // As in external-dns, 0 is the default.
      ...(typeof recordTTL === 'number' && recordTTL !== 0 ? { recordTTL } : {}),
      setIdentifier,
      ...(properties.length === 0 ? {} : { providerSpecific: properties }),
    },
    settings: mapped.settings,
    problems: mapped.problems.map((problem) => under(PROPERTIES, problem)),
  }
}

/** Adds an endpoint. As in external-dns, targets of otherwise equal endpoints are united, except host names. */
function addEndpoint({ endpoints }: Host, endpoint: EndpointDocument): void {
  const { targets, ...rest } = endpoint
  const isName = rest.recordType === 'CNAME' || rest.recordType === 'ALIAS'
  const key = JSON.stringify(isName ? endpoint : rest)
  const known = endpoints.get(key)
  const united = [...new Set([...(known?.targets ?? []), ...targets])]
  endpoints.set(key, { ...endpoint, targets: united })
}

/** Adds a setting of an endpoint to its host; the first one counts. Returns false if it has another value. */
function addSetting({ settings }: Host, { name, value }: EndpointProperty): boolean {
  const known = settings.get(name)
  if (known === undefined) settings.set(name, value)
  return known === undefined || known === value
}

function recordOf(
  object: ApiObject,
  name: string,
  host: Host,
  common: ObjectSettings,
  onProblem: OnProblem,
): RecordDocument {
  const endpoints = [...host.endpoints.values()]
  const annotations: Record<string, string> = { ...common.annotations }
  let { healthCheck } = common
  for (const [key, value] of host.settings) {
    if (key === HEALTH_CHECK_KEY) healthCheck = scanCheckText(value, onProblem)
    else annotations[SETTING_PREFIX + key] = value
  }
  // A shift concerns the hosts that have its set identifier.
  const [, to] = SHIFT_TO.exec(annotations[SHIFT] ?? '') ?? []
  if (!endpoints.some(({ setIdentifier }) => setIdentifier === to)) delete annotations[SHIFT]
  const spec = { rootHost: name, endpoints, ...(healthCheck === undefined ? {} : { healthCheck }) }
  return recordDocument(metadataOf('dnsendpoint', object, name, annotations), spec)
}

/** Puts a path below a place. */
function under(place: FieldPlace, { path, message }: FieldProblem): FieldProblem {
  return { path: [...place.path(), ...path], message }
}
