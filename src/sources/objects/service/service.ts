import { type ApiObject, type JsonValue, textOf } from '../../../kube/api.ts'
import type { RecordDocument } from '../../../records/record-document.ts'
import { type FieldPlace, quote, RefusedError, SPEC } from '../../../records/validate/fields.ts'
import { ExternalDnsAnnotations } from '../external-dns-annotations.ts'
import { RecordsOfHost } from '../host-record.ts'
import { loadBalancerTargets } from '../load-balancer.ts'
import { partOf, textsOf } from '../object-fields.ts'
import type { OnProblem } from '../object-kind.ts'
import { checkHost, endpointsOf, type ObjectTargets, type PlainEndpoint } from '../targets.ts'
import type { ServiceCluster } from './cluster-view.ts'
import { headlessEndpoints, NODE_EXTERNAL } from './headless.ts'
import { nodeTargets, portEndpoints } from './node-port.ts'
import { NODES, PODS, SLICES } from './plurals.ts'

const INTERNAL_HOSTNAME = 'internal-hostname'
/** `spec.clusterIP` of a headless Service. */
const HEADLESS = 'None'

/** A Service with host names. */
export interface Service {
  readonly object: ApiObject
  readonly externalDns: ExternalDnsAnnotations
  /** The other resources that its records depend on. */
  readonly needs: ReadonlySet<string>
}

/** Reads a Service; undefined = it has no host names, or another controller is responsible for it. */
export function readService(object: ApiObject): Service | undefined {
  const externalDns = new ExternalDnsAnnotations(object)
  const hosts = [externalDns.text('hostname'), externalDns.text(INTERNAL_HOSTNAME)].join('')
  if (externalDns.isOfOther || hosts.trim() === '') return undefined
  // The list of managers is often larger than all the rest.
  const { managedFields: _, ...metadata } = partOf(object, 'metadata')
  return { object: { ...object, metadata }, externalDns, needs: needsOf(object, externalDns) }
}

function needsOf({ spec }: ApiObject, externalDns: ExternalDnsAnnotations): ReadonlySet<string> {
  if ((externalDns.text('target') ?? '') !== '') return new Set()
  const type = typeOf(spec)
  if (type === 'NodePort') {
    const isLocal = textOf(spec, 'externalTrafficPolicy') === 'Local'
    return new Set(isLocal ? [NODES, SLICES] : [NODES])
  }
  if (type !== 'ClusterIP' || textOf(spec, 'clusterIP') !== HEADLESS) return new Set()
  const usesNodes = externalDns.text('endpoints-type') === NODE_EXTERNAL
  return new Set(usesNodes ? [NODES, SLICES, PODS] : [SLICES, PODS])
}

function typeOf(spec: JsonValue | undefined): string {
  return textOf(spec, 'type') || 'ClusterIP'
}

/** Makes the records of a Service, one for each host. Throws RefusedError. */
export function makeServiceRecords(
  { object, externalDns }: Service,
  cluster: ServiceCluster,
  onProblem: OnProblem,
): readonly RecordDocument[] {
  for (const problem of externalDns.problems) onProblem(problem)
  const records = new RecordsOfHost('service', object, externalDns, onProblem)
  const hosts = new Map<string, PlainEndpoint[]>()
  for (const key of ['hostname', INTERNAL_HOSTNAME]) {
    const place = externalDns.placeOf(key)
    for (const text of externalDns.list(key)) {
      const host = checkHost(text, place)
      const isInternal = key === INTERNAL_HOSTNAME
      const found = endpointsOfHost(object, externalDns, { host, isInternal }, cluster, onProblem)
      hosts.set(host, unite([...(hosts.get(host) ?? []), ...found]))
    }
  }
  return [...hosts].flatMap(([host, endpoints]) => {
    return endpoints.length === 0 ? [] : [records.make(host, endpoints)]
  })
}

/** A host of a Service. `isInternal`: by the annotation `internal-hostname`. */
interface ServiceHost {
  readonly host: string
  readonly isInternal: boolean
}

function endpointsOfHost(
  object: ApiObject,
  externalDns: ExternalDnsAnnotations,
  { host, isInternal }: ServiceHost,
  cluster: ServiceCluster,
  onProblem: OnProblem,
): readonly PlainEndpoint[] {
  const ofTargets = (targets: ObjectTargets): readonly PlainEndpoint[] => {
    if (targets.texts.length > 0) return endpointsOf(host, targets, onProblem)
    throw new RefusedError(targets.place, 'the Service has no address yet')
  }
  const given = externalDns.targets()
  if (given !== undefined) return ofTargets(given)
  const { spec } = object
  const type = typeOf(spec)
  const isHeadless = textOf(spec, 'clusterIP') === HEADLESS
  switch (type) {
    case 'LoadBalancer':
      return ofTargets(isInternal ? clusterTargets(spec) : publicTargets(object))
    case 'NodePort':
      return [
        ...portEndpoints(object, host),
        ...ofTargets(nodeTargets(object, externalDns, cluster)),
      ]
    case 'ExternalName':
      return ofTargets(externalTargets(spec))
    default:
      if (isHeadless) return headlessEndpoints({ object, externalDns, cluster }, host, onProblem)
      if (isInternal) return ofTargets(clusterTargets(spec))
  }
  const message = `${quote(host)} is not served: a Service of type ${type} has no address outside of the cluster; write the annotation internal-hostname or target`
  onProblem({ path: externalDns.placeOf('hostname').path(), message })
  return []
}

function clusterTargets(spec: JsonValue | undefined): ObjectTargets {
  const address = textOf(spec, 'clusterIP')
  const isAddress = address !== '' && address !== HEADLESS
  return { texts: isAddress ? [address] : [], place: SPEC.at('clusterIP') }
}

/** External addresses replace those of the load balancer. */
function publicTargets(object: ApiObject): ObjectTargets {
  const texts = textsOf(object.spec, 'externalIPs')
  return texts.length > 0 ? { texts, place: EXTERNAL } : loadBalancerTargets(object)
}

const EXTERNAL: FieldPlace = SPEC.at('externalIPs')

function externalTargets(spec: JsonValue | undefined): ObjectTargets {
  const texts = textsOf(spec, 'externalIPs')
  if (texts.length > 0) return { texts, place: EXTERNAL }
  const name = textOf(spec, 'externalName')
  return { texts: name === '' ? [] : [name], place: SPEC.at('externalName') }
}

/** Unites endpoints of one name and type: a host may be in both annotations. */
function unite(endpoints: readonly PlainEndpoint[]): PlainEndpoint[] {
  const united = new Map<string, PlainEndpoint>()
  for (const endpoint of endpoints) {
    const { dnsName, recordType, targets } = endpoint
    const key = `${recordType} ${dnsName}`
    const all = [...new Set([...(united.get(key)?.targets ?? []), ...targets])]
    united.set(key, { ...endpoint, targets: all })
  }
  return [...united.values()]
}
