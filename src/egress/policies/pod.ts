import { printAddress, scanAddress } from '../../dns/text/address.ts'
import { type ApiObject, isObject, textOf } from '../../kube/api.ts'
import { NAMESPACE_LABELS, POD_NAMESPACE } from './cilium/cilium-destination.ts'
import type { LabelMap } from './label-selector.ts'
import { labelsOf } from './policy-kinds.ts'

const SERVICE_ACCOUNT = 'io.cilium.k8s.policy.serviceaccount'
const NAMESPACE_NAME = 'kubernetes.io/metadata.name'

/** What policies and clients need of a Pod. */
export interface Pod {
  /** `namespace/name/uid`. */
  readonly id: string
  readonly namespace: string
  readonly labels: LabelMap
  readonly serviceAccount: string
  /** In canonical form, at most one of each family. Empty = no policy applies to the Pod. */
  readonly addresses: readonly string[]
  /** Of Pods with one address, the one with the greatest rank has it: the last that was created. */
  readonly rank: string
}

/** Reads a Pod. Those of the host's network and those that have ended have no addresses. */
export function readPod(object: ApiObject): Pod {
  const { metadata, spec, status } = object
  const namespace = textOf(metadata, 'namespace')
  const id = `${namespace}/${textOf(metadata, 'name')}/${textOf(metadata, 'uid')}`
  const phase = textOf(status, 'phase')
  const isOver = phase === 'Succeeded' || phase === 'Failed'
  const isOfHost = isObject(spec) && spec.hostNetwork === true
  const isDeleting = textOf(metadata, 'deletionTimestamp') !== ''
  return {
    id,
    namespace,
    labels: labelsOf(object),
    serviceAccount: textOf(spec, 'serviceAccountName'),
    addresses: isOver || isOfHost ? [] : addressesOf(status),
    rank: `${isDeleting ? 0 : 1} ${textOf(metadata, 'creationTimestamp')} ${id}`,
  }
}

function addressesOf(status: ApiObject[string] | undefined): readonly string[] {
  const list = isObject(status) && Array.isArray(status.podIPs) ? status.podIPs : []
  const texts = list.length > 0 ? list.map((one) => textOf(one, 'ip')) : [textOf(status, 'podIP')]
  const addresses = texts.map(scanAddress).filter((address) => address !== undefined)
  const first = [1, 2].map((family) => addresses.find((address) => address.family === family))
  return first
    .filter((address) => address !== undefined)
    .map(({ bytes, family }) => printAddress(bytes, family))
}

/** The labels of a Namespace; without an object it has the one that all have. */
export function namespaceLabels(name: string, object: ApiObject | undefined): LabelMap {
  const labels = object === undefined ? new Map<string, string>() : labelsOf(object)
  return labels.set(NAMESPACE_NAME, name)
}

/** The labels of a Pod's Cilium endpoint: its own, and those that Cilium adds. */
export function endpointLabels(
  { labels, namespace, serviceAccount }: Pod,
  ofNamespace: LabelMap,
): LabelMap {
  const all = new Map(labels)
  for (const [key, value] of ofNamespace) all.set(`${NAMESPACE_LABELS}${key}`, value)
  all.set(POD_NAMESPACE, namespace)
  return serviceAccount === '' ? all : all.set(SERVICE_ACCOUNT, serviceAccount)
}
