import type { ApiObject, JsonValue } from '../../../src/kube/api.ts'
import { objectOf, type Put } from './settled.ts'

export function serviceOf(
  name: string,
  annotations: Readonly<Record<string, string>>,
  more: ApiObject,
): Put {
  return { plural: 'services', object: objectOf(['v1', 'Service'], name, annotations, more) }
}

/** `addresses`: by type. */
export function nodeOf(
  name: string,
  addresses: Readonly<Record<string, readonly string[]>>,
  spec: ApiObject = {},
): Put {
  const list = Object.entries(addresses).flatMap(([type, texts]) => {
    return texts.map((address) => ({ type, address }))
  })
  const object = { metadata: { name }, spec, status: { addresses: list } }
  return { plural: 'nodes', object: { apiVersion: 'v1', kind: 'Node', ...object } }
}

interface PodFields {
  readonly hostname?: string
  readonly node?: string
  readonly hostAddress?: string
  readonly annotations?: Readonly<Record<string, string>>
}

export function podOf(name: string, { hostname, node, hostAddress, annotations }: PodFields): Put {
  const spec = { hostname: hostname ?? '', nodeName: node ?? '' }
  const more = { spec, status: { hostIP: hostAddress ?? '' } }
  return { plural: 'pods', object: objectOf(['v1', 'Pod'], name, annotations ?? {}, more) }
}

interface EndpointFields {
  /** Missing = it is no Pod. */
  readonly pod?: string
  readonly addresses: readonly string[]
  readonly conditions?: ApiObject
  readonly node?: string
  readonly hostname?: string
}

export function sliceOf(
  name: string,
  service: string,
  endpoints: readonly EndpointFields[],
  addressType = 'IPv4',
): Put {
  const metadata = { namespace: 'shop', name, labels: { 'kubernetes.io/service-name': service } }
  const list = endpoints.map(({ pod, addresses, conditions, node, hostname }): JsonValue => {
    return {
      addresses,
      conditions: conditions ?? {},
      ...(node === undefined ? {} : { nodeName: node }),
      ...(hostname === undefined ? {} : { hostname }),
      ...(pod === undefined ? {} : { targetRef: { kind: 'Pod', name: pod, namespace: 'shop' } }),
    }
  })
  const object = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata }
  return { plural: 'endpointslices', object: { ...object, addressType, endpoints: list } }
}
