import { domainToASCII } from 'node:url'
import type { EndpointProperty } from '../sources/objects/provider-properties.ts'

/** An endpoint as external-dns sends and expects it. */
export interface ExternalEndpoint {
  readonly dnsName: string
  readonly recordType: string
  readonly targets: readonly string[]
  /** '' = none. */
  readonly setIdentifier: string
  /** 0 = none. */
  readonly ttlSeconds: number
  /** Stored only for endpoints of the registry. */
  readonly labels: Readonly<Record<string, string>>
  readonly properties: readonly EndpointProperty[]
}

/** A plan of external-dns. An update is its old form in `remove` and its new form in `put`. */
export interface Changes {
  readonly remove: readonly ExternalEndpoint[]
  readonly put: readonly ExternalEndpoint[]
}

/** The body of a request is invalid: the reason, with its place in the body. */
export class InvalidBody extends Error {}

type JsonObject = Readonly<Record<string, unknown>>

/** The label with the name of the endpoint that a text of the TXT registry is for. */
const OWNED_LABEL = 'ownedRecord'
const REGISTRY_TEXT = /^"?heritage=external-dns(?:[,"]|$)/

/** Reads the body of `POST /records`. Throws InvalidBody. */
export function scanChanges(text: string): Changes {
  const body = parse(text)
  if (!isJsonObject(body)) throw new InvalidBody('the body must be a JSON object')
  const list = (name: string): ExternalEndpoint[] => scanList(own(body, name), name)
  return {
    remove: [...list('delete'), ...list('updateOld')],
    put: [...list('create'), ...list('updateNew')],
  }
}

/** Reads a JSON list of endpoints. Throws InvalidBody. */
export function scanEndpoints(text: string): ExternalEndpoint[] {
  return scanList(parse(text), '')
}

/** Returns the JSON of a list of endpoints. */
export function printEndpoints(endpoints: readonly ExternalEndpoint[]): string {
  return JSON.stringify(
    endpoints.map(({ ttlSeconds, setIdentifier, properties, labels, ...rest }) => ({
      ...rest,
      ...(setIdentifier === '' ? {} : { setIdentifier }),
      ...(ttlSeconds === 0 ? {} : { recordTTL: ttlSeconds }),
      ...(Object.keys(labels).length === 0 ? {} : { labels }),
      ...(properties.length === 0 ? {} : { providerSpecific: properties }),
    })),
  )
}

/** True for a text with which external-dns's TXT registry marks an endpoint as its own. It is not public. */
export function isRegistryEndpoint({ recordType, targets, labels }: ExternalEndpoint): boolean {
  if (recordType !== 'TXT') return false
  return Object.hasOwn(labels, OWNED_LABEL) || targets.every((one) => REGISTRY_TEXT.test(one))
}

/** Returns the host whose DNSRecord has the endpoint: lower case, ASCII, without a final dot. */
export function hostOf(endpoint: ExternalEndpoint): string {
  const { labels, dnsName } = endpoint
  const isOfAnother = isRegistryEndpoint(endpoint) && Object.hasOwn(labels, OWNED_LABEL)
  return asciiName((isOfAnother && labels[OWNED_LABEL]) || dnsName)
}

/** Returns a name as a DNSRecord has it: lower case, in punycode, without a final dot. */
export function asciiName(name: string): string {
  const plain = name.replace(/\.$/, '')
  const isAscii = /^[\0-\x7f]*$/.test(plain)
  return (isAscii ? plain : domainToASCII(plain) || plain).toLowerCase()
}

/** Identifies an endpoint among those of its host. */
export function keyOf({ dnsName, recordType, setIdentifier }: ExternalEndpoint): string {
  return JSON.stringify([asciiName(dnsName), recordType, setIdentifier])
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw new InvalidBody('the body is not JSON')
  }
}

/** Go writes an empty list as null. */
function scanList(value: unknown, place: string): ExternalEndpoint[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw new InvalidBody(`${place || 'the body'} must be a list`)
  return value.map((item: unknown, index) => scanEndpoint(item, `${place}[${index}]`))
}

function scanEndpoint(value: unknown, place: string): ExternalEndpoint {
  if (!isJsonObject(value)) throw new InvalidBody(`${place} must be an endpoint`)
  const text = (name: string): string => scanText(own(value, name), `${place}.${name}`)
  const ttl = own(value, 'recordTTL') ?? 0
  if (typeof ttl !== 'number' || !Number.isSafeInteger(ttl) || ttl < 0) {
    throw new InvalidBody(`${place}.recordTTL must be an integer of 0 or more`)
  }
  return {
    dnsName: text('dnsName'),
    recordType: text('recordType'),
    targets: scanTexts(own(value, 'targets'), `${place}.targets`),
    setIdentifier: text('setIdentifier'),
    ttlSeconds: ttl,
    labels: scanLabels(own(value, 'labels'), `${place}.labels`),
    properties: scanProperties(own(value, 'providerSpecific'), `${place}.providerSpecific`),
  }
}

function scanText(value: unknown, place: string): string {
  if (value === undefined || value === null) return ''
  if (typeof value !== 'string') throw new InvalidBody(`${place} must be a string`)
  return value
}

function scanTexts(value: unknown, place: string): string[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw new InvalidBody(`${place} must be a list`)
  return value.map((item: unknown, index) => scanText(item, `${place}[${index}]`))
}

function scanLabels(value: unknown, place: string): Record<string, string> {
  if (value === undefined || value === null) return {}
  if (!isJsonObject(value)) throw new InvalidBody(`${place} must be a JSON object`)
  // A label may be called `__proto__`: this makes it an ordinary property.
  return Object.fromEntries(
    Object.entries(value).map(([name, text]) => [name, scanText(text, `${place}.${name}`)]),
  )
}

function scanProperties(value: unknown, place: string): EndpointProperty[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw new InvalidBody(`${place} must be a list`)
  return value.map((item: unknown, index) => {
    const at = `${place}[${index}]`
    if (!isJsonObject(item)) throw new InvalidBody(`${at} must be a JSON object`)
    const text = (name: string): string => scanText(own(item, name), `${at}.${name}`)
    return { name: text('name'), value: text('value') }
  })
}

function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function own(parent: JsonObject, name: string): unknown {
  return Object.hasOwn(parent, name) ? parent[name] : undefined
}
