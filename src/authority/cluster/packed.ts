import { type ApiObject, isObject, type JsonValue, textOf } from '../../kube/api.ts'

/** A port of a Service or an EndpointSlice: name ('' = unnamed), protocol, number. */
export type Port = readonly [name: string, protocol: string, port: number]

/** The part of a Service that its records depend on. */
export interface ServiceFacts {
  /** `spec.externalName` of a Service of type ExternalName; '' = another type. */
  readonly alias: string
  readonly isHeadless: boolean
  readonly clusterIPs: readonly string[]
  /** `spec.publishNotReadyAddresses`. */
  readonly publishesNotReady: boolean
  readonly ports: readonly Port[]
  /** Addresses and host names at which clients outside of the cluster reach the Service. */
  readonly externals: readonly string[]
}

/** The part of an endpoint that its records depend on. */
interface EndpointFacts {
  readonly addresses: readonly string[]
  /** '' = none. */
  readonly hostname: string
  /** Name of the Pod; '' = none. */
  readonly pod: string
  readonly isReady: boolean
}

/** The part of an EndpointSlice that records depend on. */
interface SliceFacts {
  readonly ports: readonly Port[]
  readonly endpoints: readonly EndpointFacts[]
}

/*
 * The server keeps these facts as one text per object: a text needs a fraction of the memory of the objects, and
 * two equal texts mean that no record changes.
 */

type ServiceTuple = readonly [
  string,
  boolean,
  readonly string[],
  boolean,
  readonly Port[],
  readonly string[],
]
type EndpointTuple = readonly [readonly string[], string, string, boolean]
type SliceTuple = readonly [readonly Port[], readonly EndpointTuple[]]

/** The value of `clusterIP` of a headless Service. */
const HEADLESS = 'None'
const TRIGGER_ANNOTATION = 'endpoints.kubernetes.io/last-change-trigger-time'
const SERVICE_LABEL = 'kubernetes.io/service-name'

export function packService({ spec, status }: ApiObject): string {
  const given = isObject(spec) ? spec : {}
  const isAlias = textOf(given, 'type') === 'ExternalName'
  const listed = textsOf(given.clusterIPs)
  const clusterIPs = listed.length > 0 ? listed : [textOf(given, 'clusterIP')]
  const tuple: ServiceTuple = [
    isAlias ? textOf(given, 'externalName') : '',
    !isAlias && clusterIPs[0] === HEADLESS,
    isAlias ? [] : clusterIPs.filter((address) => address !== '' && address !== HEADLESS),
    given.publishNotReadyAddresses === true,
    portsOf(given.ports),
    [...textsOf(given.externalIPs), ...ingressOf(status)],
  ]
  return JSON.stringify(tuple)
}

export function unpackService(packed: string): ServiceFacts {
  const tuple = JSON.parse(packed) as ServiceTuple
  const [alias, isHeadless, clusterIPs, publishesNotReady, ports, externals] = tuple
  return { alias, isHeadless, clusterIPs, publishesNotReady, ports, externals }
}

export function packSlice(object: ApiObject): string {
  const endpoints = Array.isArray(object.endpoints) ? object.endpoints : []
  const tuple: SliceTuple = [portsOf(object.ports), endpoints.filter(isObject).map(endpointOf)]
  return JSON.stringify(tuple)
}

export function unpackSlice(packed: string): SliceFacts {
  const [ports, endpoints] = JSON.parse(packed) as SliceTuple
  return {
    ports,
    endpoints: endpoints.map(([addresses, hostname, pod, isReady]) => {
      return { addresses, hostname, pod, isReady }
    }),
  }
}

/** Returns the name of the Service that an EndpointSlice belongs to; '' = none. */
export function serviceOfSlice({ metadata }: ApiObject): string {
  return isObject(metadata) ? textOf(metadata.labels, SERVICE_LABEL) : ''
}

/** When the endpoints of a Service changed, by the wall clock of the controller that wrote the slice. */
export interface EndpointsTrigger {
  readonly namespace: string
  readonly service: string
  readonly changedMs: number
}

/** Returns the change that an EndpointSlice was written for; undefined = it does not say, or is of no Service. */
export function triggerOf(object: ApiObject): EndpointsTrigger | undefined {
  const { metadata } = object
  const service = serviceOfSlice(object)
  if (service === '' || !isObject(metadata)) return undefined
  const changedMs = Date.parse(textOf(metadata.annotations, TRIGGER_ANNOTATION))
  if (Number.isNaN(changedMs)) return undefined
  return { namespace: textOf(metadata, 'namespace'), service, changedMs }
}

/** Returns the addresses of a Pod; none once it is being deleted, as in CoreDNS. */
export function podAddresses({ metadata, status }: ApiObject): readonly string[] {
  if (textOf(metadata, 'deletionTimestamp') !== '' || !isObject(status)) return []
  const listed = Array.isArray(status.podIPs) ? status.podIPs : []
  return listed.map((entry) => textOf(entry, 'ip')).filter((address) => address !== '')
}

/** Returns the addresses of the load balancers of a Service, or their host names. */
function ingressOf(status: JsonValue | undefined): readonly string[] {
  const balancer = isObject(status) ? status.loadBalancer : undefined
  const ingress = isObject(balancer) && Array.isArray(balancer.ingress) ? balancer.ingress : []
  return ingress
    .map((entry) => textOf(entry, 'ip') || textOf(entry, 'hostname'))
    .filter((text) => text !== '')
}

function endpointOf(endpoint: ApiObject): EndpointTuple {
  const { conditions, targetRef } = endpoint
  // An unknown state counts as ready (EndpointConditions of the API).
  const isReady = !isObject(conditions) || conditions.ready !== false
  const pod = textOf(targetRef, 'kind') === 'Pod' ? textOf(targetRef, 'name') : ''
  return [textsOf(endpoint.addresses), textOf(endpoint, 'hostname'), pod, isReady]
}

function portsOf(ports: JsonValue | undefined): readonly Port[] {
  if (!Array.isArray(ports)) return []
  return ports.filter(isObject).flatMap((entry): Port[] => {
    const { port } = entry
    // A slice without a port number matches every port (EndpointPort of the API): no SRV record.
    if (typeof port !== 'number' || !Number.isInteger(port) || port < 0 || port > 65_535) return []
    return [[textOf(entry, 'name'), textOf(entry, 'protocol') || 'TCP', port]]
  })
}

function textsOf(value: JsonValue | undefined): readonly string[] {
  if (!Array.isArray(value)) return []
  return value.filter((entry): entry is string => typeof entry === 'string')
}
