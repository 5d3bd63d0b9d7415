import { type ApiObject, isObject, textOf } from '../kube/api.ts'
import { API_VERSION } from '../records/dns-record.ts'
import type { EndpointDocument } from '../records/record-document.ts'
import type { FieldProblem } from '../records/validate/fields.ts'
import { SERVED, validateResource } from '../records/validate/resource.ts'
import { SETTING_PREFIX } from '../records/validate/settings.ts'
import { recordNameOf } from '../sources/objects/record-name.ts'
import { parseOneDocument, YamlProblem } from '../yaml/parse-document.ts'
import {
  type Changes,
  type ExternalEndpoint,
  InvalidBody,
  isRegistryEndpoint,
  keyOf,
  printEndpoints,
  scanEndpoints,
} from './external-endpoint.ts'
import { fromDocument, mapEndpoint, SETTING_PROPERTY_PREFIX } from './map-endpoint.ts'

/** The label that marks the records of a webhook. Its value is the owner. */
export const OWNER_LABEL = 'webhook.sextant.io/owner'
const MANAGED_BY = { 'app.kubernetes.io/managed-by': 'sextant-webhook' }
const ZONE_LABEL = 'kuadrant.io/coredns-zone-name'
/** The texts of the TXT registry: JSON of endpoints. They are not public, so they are not in `spec.endpoints`. */
export const REGISTRY_ANNOTATION = 'webhook.sextant.io/registry'
/** All annotations of an object may have 256 KiB. The rest is left to others. */
const REGISTRY_OCTETS_MAX = 224 * 1024
const HEALTH_CHECK_KEY = 'health-check'

/** Whose records they are, and where. */
export interface RecordScope {
  readonly owner: string
  /** Names in lower case without a final dot. */
  readonly zones: readonly string[]
  readonly namespace: string
}

interface Refused {
  readonly refused: FieldProblem
}

/** What external-dns stored for a host. */
export interface HostEndpoints {
  readonly served: readonly ExternalEndpoint[]
  /** Texts of the TXT registry. */
  readonly registry: readonly ExternalEndpoint[]
}

export const NO_ENDPOINTS: HostEndpoints = { served: [], registry: [] }

/** Returns the name of the DNSRecord of a host. */
export function nameOfHost(host: string, owner: string): string {
  const readable = host.replaceAll(/[^a-z0-9]+/g, '-').replace(/^-/, '')
  return recordNameOf('webhook', readable || 'host', JSON.stringify([owner, host]))
}

/** Returns what a record of ours stores. */
export function readHostRecord(record: ApiObject): HostEndpoints {
  const { endpoints } = isObject(record.spec) ? record.spec : {}
  const served = Array.isArray(endpoints) ? endpoints.filter(isObject).map(readEndpoint) : []
  return { served, registry: readRegistry(record) }
}

/** True for a record that the webhook of that owner made. */
export function isOwned(record: ApiObject, owner: string): boolean {
  const labels = isObject(record.metadata) ? record.metadata.labels : undefined
  return textOf(labels, OWNER_LABEL) === owner
}

/** Applies changes of one host: twice has the same effect as once. */
export function changeEndpoints(before: HostEndpoints, { remove, put }: Changes): HostEndpoints {
  const byKey = new Map(
    [...before.served, ...before.registry].map((endpoint) => [keyOf(endpoint), endpoint]),
  )
  for (const endpoint of remove) byKey.delete(keyOf(endpoint))
  for (const endpoint of put) byKey.set(keyOf(endpoint), endpoint)
  const sorted = [...byKey].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, endpoint]) => endpoint)
  return {
    served: sorted.filter((endpoint) => !isRegistryEndpoint(endpoint)),
    registry: sorted.filter(isRegistryEndpoint),
  }
}

/**
 * Returns the record of a host with these endpoints, or why it cannot be served. `before`: the record so far; what
 * others wrote into it is kept.
 */
export function composeHostRecord(
  host: string,
  { served, registry }: HostEndpoints,
  scope: RecordScope,
  before: ApiObject | undefined,
): { readonly record: ApiObject } | Refused {
  const endpoints: EndpointDocument[] = []
  for (const endpoint of served) {
    const mapped = mapEndpoint(endpoint)
    if ('refused' in mapped) return mapped
    endpoints.push(mapped.document)
  }
  const { [HEALTH_CHECK_KEY]: checkText, ...settings } = settingsOf(endpoints)
  const healthCheck = checkText === undefined ? undefined : parseOneDocument(checkText)
  if (healthCheck instanceof YamlProblem) return refuse(`health-check: ${healthCheck.message}`)
  const texts = registry.length === 0 ? '' : printEndpoints(registry)
  if (Buffer.byteLength(texts) > REGISTRY_OCTETS_MAX) {
    return refuse(`texts of the TXT registry have more than ${REGISTRY_OCTETS_MAX} octets`)
  }
  const { healthCheck: _, ...spec } = isObject(before?.spec) ? before.spec : {}
  const record: ApiObject = {
    ...before,
    apiVersion: API_VERSION,
    kind: 'DNSRecord',
    metadata: composeMetadata(host, scope, before, {
      ...prefixed(settings),
      ...(texts === '' ? {} : { [REGISTRY_ANNOTATION]: texts }),
    }),
    spec: {
      ...spec,
      rootHost: host,
      endpoints: endpoints.map((endpoint) => ({ ...endpoint })),
      ...(healthCheck === undefined ? {} : { healthCheck }),
    },
  }
  return checkRecord(record)
}

function checkRecord(record: ApiObject): { readonly record: ApiObject } | Refused {
  const checked = validateResource(record, SERVED)
  if (checked.kind === 'refused') return { refused: checked.problem }
  // It names a command of the Corefile, which authors of Services may not choose.
  const isCommand = checked.kind === 'record' && checked.record.healthCheck?.protocol === 'EXEC'
  return isCommand ? refuse('health-check: protocol EXEC is not possible') : { record }
}

function composeMetadata(
  host: string,
  { owner, zones, namespace }: RecordScope,
  before: ApiObject | undefined,
  annotations: ApiObject,
): ApiObject {
  const metadata = metadataOf(before)
  const zone = longestZone(host, zones)
  return {
    ...metadata,
    name: nameOfHost(host, owner),
    namespace,
    labels: {
      ...(isObject(metadata.labels) ? metadata.labels : {}),
      ...MANAGED_BY,
      [OWNER_LABEL]: owner,
      ...(zone === undefined ? {} : { [ZONE_LABEL]: zone }),
    },
    annotations: { ...annotationsOfOthers(before), ...annotations },
  }
}

/** Returns the longest of the zones that has the host; undefined = none. */
export function longestZone(host: string, zones: readonly string[]): string | undefined {
  const having = zones.filter((zone) => host === zone || host.endsWith(`.${zone}`))
  return having.sort((a, b) => b.length - a.length)[0]
}

function refuse(message: string): Refused {
  return { refused: { path: [], message } }
}

function readEndpoint(endpoint: ApiObject): ExternalEndpoint {
  const [read] = scanEndpoints(JSON.stringify([endpoint]))
  const { dnsName, recordType, targets, ttlSeconds, setIdentifier, properties } = read!
  return fromDocument({
    dnsName,
    recordType,
    targets,
    recordTTL: ttlSeconds,
    setIdentifier,
    providerSpecific: properties,
  })
}

/** An annotation that was edited by hand and is invalid counts as missing. */
function readRegistry(record: ApiObject): readonly ExternalEndpoint[] {
  const annotations = metadataOf(record).annotations
  const text = textOf(annotations, REGISTRY_ANNOTATION)
  if (text === '') return []
  try {
    return scanEndpoints(text).filter(isRegistryEndpoint)
  } catch (error) {
    if (!(error instanceof InvalidBody)) throw error
    return []
  }
}

/** The settings of the record, by name. If endpoints differ, the first one decides. */
function settingsOf(endpoints: readonly EndpointDocument[]): Record<string, string> {
  const settings = new Map<string, string>()
  for (const { providerSpecific = [] } of endpoints) {
    for (const { name, value } of providerSpecific) {
      const key = name.slice(SETTING_PROPERTY_PREFIX.length)
      if (name.startsWith(SETTING_PROPERTY_PREFIX) && !settings.has(key)) settings.set(key, value)
    }
  }
  return Object.fromEntries(settings)
}

function prefixed(settings: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [SETTING_PREFIX + name, value]),
  )
}

/** The annotations that others made, such as a drain by hand. */
function annotationsOfOthers(before: ApiObject | undefined): ApiObject {
  if (before === undefined) return {}
  const { served } = readHostRecord(before)
  const ours = prefixed(
    settingsOf(
      served.map(({ properties, ...rest }) => ({ ...rest, providerSpecific: properties })),
    ),
  )
  const { annotations } = metadataOf(before)
  const isOther = (name: string): boolean =>
    name !== REGISTRY_ANNOTATION && !Object.hasOwn(ours, name)
  return Object.fromEntries(
    Object.entries(isObject(annotations) ? annotations : {}).filter(([name]) => isOther(name)),
  )
}

function metadataOf(record: ApiObject | undefined): ApiObject {
  return isObject(record?.metadata) ? record.metadata : {}
}
