import { type ApiObject, textOf } from '../../../kube/api.ts'
import { ExternalDnsAnnotations } from '../external-dns-annotations.ts'
import { itemsOf, partOf, textsOf } from '../object-fields.ts'

/** A Node, as far as endpoints need it. */
export interface NodeParts {
  readonly externalAddresses: readonly string[]
  readonly internalAddresses: readonly string[]
  readonly isSchedulable: boolean
}

/** An EndpointSlice, as far as endpoints need it. */
export interface SliceParts {
  /** `namespace/name` of its Service; '' = none. */
  readonly service: string
  /** Its addresses are IP addresses. */
  readonly hasAddresses: boolean
  readonly endpoints: readonly SliceEndpoint[]
}

/** One endpoint of an EndpointSlice that is a Pod. */
export interface SliceEndpoint {
  /** Name in the namespace of the slice. */
  readonly pod: string
  /** The first one; '' = none. */
  readonly address: string
  readonly node: string
  /** Of the Pod, if the Service is its subdomain; '' = none. */
  readonly hostname: string
  readonly isReady: boolean
  /** Ready, or would be if it was not terminating. */
  readonly isServing: boolean
}

/** A Pod, as far as endpoints need it. */
export interface PodParts {
  readonly hostname: string
  readonly hostAddress: string
  readonly node: string
  /** By the annotation `target`; empty = none. */
  readonly targets: readonly string[]
}

export function readNode(object: ApiObject): NodeParts {
  const addresses = itemsOf(object.status, 'addresses')
  const ofType = (type: string): string[] =>
    addresses
      .filter((one) => textOf(one, 'type') === type)
      .map((one) => textOf(one, 'address'))
      .filter((text) => text !== '')
  return {
    externalAddresses: ofType('ExternalIP'),
    internalAddresses: ofType('InternalIP'),
    isSchedulable: partOf(object, 'spec').unschedulable !== true,
  }
}

/** Label of an EndpointSlice with the name of its Service. */
const SERVICE_LABEL = 'kubernetes.io/service-name'

export function readSlice(object: ApiObject): SliceParts {
  const namespace = textOf(object.metadata, 'namespace')
  const service = textOf(partOf(object.metadata, 'labels'), SERVICE_LABEL)
  const type = textOf(object, 'addressType')
  return {
    service: service === '' ? '' : `${namespace}/${service}`,
    hasAddresses: type === 'IPv4' || type === 'IPv6',
    endpoints: itemsOf(object, 'endpoints').flatMap((endpoint) => {
      const target = partOf(endpoint, 'targetRef')
      if (textOf(target, 'kind') !== 'Pod' || textOf(target, 'apiVersion') !== '') return []
      const { ready, serving } = partOf(endpoint, 'conditions')
      // A missing condition means true.
      const isReady = ready !== false
      return [
        {
          pod: textOf(target, 'name'),
          address: textsOf(endpoint, 'addresses')[0] ?? '',
          node: textOf(endpoint, 'nodeName'),
          hostname: textOf(endpoint, 'hostname'),
          isReady,
          isServing: typeof serving === 'boolean' ? serving : isReady,
        },
      ]
    }),
  }
}

export function readPod(object: ApiObject): PodParts {
  return {
    hostname: textOf(object.spec, 'hostname'),
    hostAddress: textOf(object.status, 'hostIP'),
    node: textOf(object.spec, 'nodeName'),
    targets: new ExternalDnsAnnotations(object).validList('target'),
  }
}
