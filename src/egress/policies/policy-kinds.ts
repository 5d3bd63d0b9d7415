import { type ApiObject, type ApiResource, isObject, textOf } from '../../kube/api.ts'
import {
  scanAdminNetworkPolicy,
  scanBaselineAdminNetworkPolicy,
  scanClusterNetworkPolicy,
} from './admin/admin-policy.ts'
import { scanCiliumPolicy } from './cilium/cilium-policy.ts'
import { scanFqdnNetworkPolicy } from './fqdn/fqdn-network-policy.ts'
import { FQDN_APIS } from './fqdn/fqdn-policy.ts'
import { scanEgressFirewall } from './openshift/egress-firewall.ts'
import type { PolicyIdentity, PolicyOptions, ScannedPolicies } from './policy.ts'

/** A kind of objects that clients and their rules come from. */
export interface PolicyKind {
  readonly kind: string
  /** The version that is read from a cluster, if it serves it. */
  readonly resource: ApiResource
  /** Other versions with the same schema, read if the cluster lacks the former ones; absent = none. */
  readonly equalVersions?: readonly string[]
  readonly isNamespaced: boolean
  /** Undefined = the kind is no policy: Pods and Namespaces. */
  readonly scan:
    | ((object: ApiObject, identity: PolicyIdentity, options: PolicyOptions) => ScannedPolicies)
    | undefined
}

export const PODS: PolicyKind = {
  kind: 'Pod',
  resource: { group: '', version: 'v1', plural: 'pods' },
  isNamespaced: true,
  scan: undefined,
}

export const NAMESPACES: PolicyKind = {
  kind: 'Namespace',
  resource: { group: '', version: 'v1', plural: 'namespaces' },
  isNamespaced: false,
  scan: undefined,
}

const CILIUM = { group: 'cilium.io', version: 'v2' }
const V1ALPHA1 = { group: 'policy.networking.k8s.io', version: 'v1alpha1' }
const V1BETA1 = { group: 'policy.networking.k8s.io', version: 'v1beta1' }

/** The kinds of policies. */
export const POLICY_KINDS: readonly PolicyKind[] = [
  {
    kind: 'CiliumNetworkPolicy',
    resource: { ...CILIUM, plural: 'ciliumnetworkpolicies' },
    isNamespaced: true,
    scan: scanCiliumPolicy,
  },
  {
    kind: 'CiliumClusterwideNetworkPolicy',
    resource: { ...CILIUM, plural: 'ciliumclusterwidenetworkpolicies' },
    isNamespaced: false,
    scan: scanCiliumPolicy,
  },
  {
    kind: 'AdminNetworkPolicy',
    resource: { ...V1ALPHA1, plural: 'adminnetworkpolicies' },
    isNamespaced: false,
    scan: scanAdminNetworkPolicy,
  },
  {
    kind: 'BaselineAdminNetworkPolicy',
    resource: { ...V1ALPHA1, plural: 'baselineadminnetworkpolicies' },
    isNamespaced: false,
    scan: scanBaselineAdminNetworkPolicy,
  },
  {
    kind: 'ClusterNetworkPolicy',
    // Release 0.3 stores v1beta1, and serves both; earlier ones have v1alpha2 only.
    resource: { ...V1BETA1, plural: 'clusternetworkpolicies' },
    equalVersions: ['v1alpha2'],
    isNamespaced: false,
    scan: scanClusterNetworkPolicy,
  },
  {
    kind: 'EgressFirewall',
    resource: { group: 'k8s.ovn.org', version: 'v1', plural: 'egressfirewalls' },
    isNamespaced: true,
    scan: scanEgressFirewall,
  },
  ...FQDN_APIS.map(({ group, version, plural }) => ({
    kind: 'FQDNNetworkPolicy',
    resource: { group, version, plural },
    isNamespaced: true,
    scan: scanFqdnNetworkPolicy,
  })),
]

/** The fields of every object of these kinds. */
export const OBJECT_FIELDS: readonly string[] = [
  ...['apiVersion', 'kind', 'metadata', 'spec', 'status'],
  // Of Cilium's policies.
  'specs',
]

const ALL_KINDS: readonly PolicyKind[] = [PODS, NAMESPACES, ...POLICY_KINDS]

/** Returns the kind that an object names in `apiVersion` and `kind`, or undefined if it is unknown. */
export function findPolicyKind(object: ApiObject): PolicyKind | undefined {
  const [version, kind] = [textOf(object, 'apiVersion'), textOf(object, 'kind')]
  return ALL_KINDS.find((one) => one.kind === kind && apiVersionsOf(one).includes(version))
}

/** Returns what objects of the kind may have as `apiVersion`. */
export function apiVersionsOf({ resource, equalVersions = [] }: PolicyKind): readonly string[] {
  const { group, version: first } = resource
  return [first, ...equalVersions].map((version) => {
    return group === '' ? version : `${group}/${version}`
  })
}

export function identityOf(kind: PolicyKind, { metadata }: ApiObject): PolicyIdentity {
  const namespace = kind.isNamespaced ? textOf(metadata, 'namespace') : ''
  const name = textOf(metadata, 'name')
  const place = namespace === '' ? name : `${namespace}/${name}`
  const origin = `${kind.kind} ${place}`
  return { namespace, name, origin, key: `${kind.kind}.${kind.resource.group} ${place}` }
}

/** What of an object its policies and their problems depend on, as text. */
export function contentOf(object: ApiObject): string {
  const { spec = null, specs = null } = object
  const others = Object.keys(object).filter((name) => !OBJECT_FIELDS.includes(name))
  return JSON.stringify([spec, specs, ...others])
}

/** Labels of `metadata`; those of another type than string are left out. */
export function labelsOf({ metadata }: ApiObject): Map<string, string> {
  const labels = isObject(metadata) ? metadata.labels : undefined
  const texts = Object.entries(isObject(labels) ? labels : {}).filter(
    (label): label is [string, string] => typeof label[1] === 'string',
  )
  return new Map(texts)
}
