import type { HostPort } from '../../../dns/host-port.ts'
import { type ApiObject, isObject, textOf } from '../../../kube/api.ts'
import { itemsOf, mappingOf, textsOf } from '../../record/fields.ts'

/** Name of the port for DNS over UDP in the Services of Kubernetes and OpenShift. */
const PORT_NAME = 'dns'
const FAMILIES = ['IPv4', 'IPv6']

/**
 * The DNS servers of a Service: each ready Pod of its EndpointSlices, once, by IPv4 if it has both
 * families. The port is the UDP port with the name `dns`, else the first UDP port.
 */
export function serversOf(slices: Iterable<ApiObject>): readonly HostPort[] {
  const servers = new Map<string, HostPort>()
  const all = [...slices]
  for (const slice of FAMILIES.flatMap((family) => all.filter(isOf(family)))) {
    const port = portOf(slice)
    if (port === undefined) continue
    for (const endpoint of itemsOf(slice, 'endpoints')) {
      const [host] = textsOf(endpoint, 'addresses')
      // An endpoint of unknown state counts as ready.
      if (host === undefined || mappingOf(endpoint, 'conditions').ready === false) continue
      const pod = textOf(endpoint.targetRef, 'uid') || host
      if (!servers.has(pod)) servers.set(pod, { host, port })
    }
  }
  return [...servers.values()]
}

function isOf(family: string): (slice: ApiObject) => boolean {
  return ({ addressType }) => addressType === family
}

function portOf(slice: ApiObject): number | undefined {
  const ports = itemsOf(slice, 'ports').filter(({ protocol }) => protocol === 'UDP')
  const { port } = ports.find(({ name }) => name === PORT_NAME) ?? ports[0] ?? {}
  return typeof port === 'number' ? port : undefined
}

/** Keeps what `serversOf` reads. */
export function trimSlice({ metadata, addressType = '', endpoints, ports }: ApiObject): ApiObject {
  const { managedFields: _, ...kept } = isObject(metadata) ? metadata : {}
  return { metadata: kept, addressType, endpoints: endpoints ?? [], ports: ports ?? [] }
}
