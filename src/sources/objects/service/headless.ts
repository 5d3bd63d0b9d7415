import { scanAddress } from '../../../dns/text/address.ts'
import { type ApiObject, textOf } from '../../../kube/api.ts'
import { keyOf } from '../../../kube/object-key.ts'
import type { ExternalDnsAnnotations } from '../external-dns-annotations.ts'
import { partOf } from '../object-fields.ts'
import type { OnProblem } from '../object-kind.ts'
import { endpointsOf, type PlainEndpoint } from '../targets.ts'
import type { PodParts, SliceEndpoint } from './cluster-parts.ts'
import type { ServiceCluster } from './cluster-view.ts'

const ENDPOINTS_TYPE = 'endpoints-type'
export const NODE_EXTERNAL = 'NodeExternalIP'
const HOST = 'HostIP'

/** A headless Service, and where its endpoints come from. */
interface HeadlessService {
  readonly object: ApiObject
  readonly externalDns: ExternalDnsAnnotations
  readonly cluster: ServiceCluster
}

/**
 * Returns the endpoints of a headless Service: those of the host with the addresses of all ready Pods, and those of
 * each Pod with a hostname. None = no Pod is ready. Throws RefusedError.
 */
export function headlessEndpoints(
  service: HeadlessService,
  host: string,
  onProblem: OnProblem,
): readonly PlainEndpoint[] {
  const { object, externalDns, cluster } = service
  // '' = the addresses of Pods.
  const type = externalDns.choice(ENDPOINTS_TYPE, [NODE_EXTERNAL, HOST])
  const place = externalDns.placeOf(ENDPOINTS_TYPE)
  const namespace = textOf(object.metadata, 'namespace')
  const targets = new Map<string, Set<string>>()
  for (const endpoint of publishedEndpoints(service, type)) {
    const pod = cluster.pod(`${namespace}/${endpoint.pod}`)
    const texts = targetsOf(type, endpoint, pod, cluster)
    const hostname = pod?.hostname || endpoint.hostname
    const isNamed = hostname !== '' && !host.startsWith('*.')
    for (const name of isNamed ? [host, `${hostname}.${host}`] : [host]) {
      const known = targets.get(name) ?? new Set()
      targets.set(name, known)
      for (const text of texts) known.add(text)
    }
  }
  return [...targets].flatMap(([name, texts]) => {
    return endpointsOf(name, { texts: [...texts].sort(), place }, onProblem)
  })
}

function publishedEndpoints({ object, cluster }: HeadlessService, type: string): SliceEndpoint[] {
  const takesUnready = partOf(object, 'spec').publishNotReadyAddresses === true
  return cluster
    .slicesOf(keyOf(object))
    .filter(({ hasAddresses }) => type !== '' || hasAddresses)
    .flatMap(({ endpoints }) => endpoints)
    .filter(({ isReady }) => isReady || takesUnready)
}

/** A Pod whose object is not known yet has the values of the EndpointSlice. */
function targetsOf(
  type: string,
  endpoint: SliceEndpoint,
  pod: PodParts | undefined,
  cluster: ServiceCluster,
): readonly string[] {
  if (pod !== undefined && pod.targets.length > 0) return pod.targets
  if (type === NODE_EXTERNAL) {
    return cluster.node(pod?.node || endpoint.node)?.externalAddresses ?? []
  }
  const address = type === HOST ? pod?.hostAddress : endpoint.address
  return address === undefined || scanAddress(address) === undefined ? [] : [address]
}
