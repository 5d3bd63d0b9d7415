import { isDeepStrictEqual } from 'node:util'
import { type ApiObject, isObject, type JsonValue, textOf } from '../../../kube/api.ts'
import { type FqdnPolicy, metadataOf, objectsIn } from '../../policies/fqdn/fqdn-policy.ts'
import type { NetworkPolicySpec } from '../../policies/fqdn/network-policy.ts'

export const KIND = 'FQDNNetworkPolicy'
/** In GKE's API: the NetworkPolicy is kept when its FQDNNetworkPolicy is deleted. */
const DELETE_POLICY = 'fqdnnetworkpolicies.networking.gke.io/delete-policy'
/** The controllers of Google and nais write the name of the policy here, in place of an owner reference. */
const OWNED_BY = 'fqdnnetworkpolicies.networking.gke.io/owned-by'

/** What to do with the NetworkPolicy of a policy. */
type NetworkPolicyPlan =
  | { readonly kind: 'none' }
  | { readonly kind: 'create' | 'replace'; readonly object: ApiObject; readonly isAdopted: boolean }

/** `existing`: the NetworkPolicy with the name of the policy, if there is one; it has no foreign owner. */
export function planNetworkPolicy(
  policy: FqdnPolicy,
  existing: ApiObject | undefined,
  spec: NetworkPolicySpec | JsonValue | undefined,
): NetworkPolicyPlan {
  const { namespace, name } = policy
  // A specification is JSON by its type, but the type has no index signature.
  const wanted = spec as unknown as ApiObject
  if (existing === undefined) {
    const metadata = { namespace, name, ownerReferences: [referenceTo(policy)] }
    const object = { ...identity, metadata, spec: wanted }
    return { kind: 'create', object, isAdopted: false }
  }
  const { managedFields: _, ...metadata } = metadataOf(existing)
  const before = objectsIn(metadata.ownerReferences)
  const others = before.filter((one) => one.controller !== true && one.uid !== policy.uid)
  const isKept = textOf(metadata.annotations, DELETE_POLICY) === 'abandon'
  const own = isKept && !policy.api.hasCache ? [] : [referenceTo(policy)]
  const ownerReferences = [...others, ...own]
  const isOwned = isDeepStrictEqual(before, ownerReferences)
  if (isOwned && isDeepStrictEqual(prune(existing.spec), prune(wanted))) return { kind: 'none' }
  const isAdopted = !before.some(({ uid }) => uid === policy.uid) && own.length > 0
  const object = {
    ...existing,
    ...identity,
    metadata: { ...metadata, ownerReferences },
    spec: wanted,
  }
  return { kind: 'replace', object, isAdopted }
}

const identity = { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' }

/**
 * Returns the kind and name of the object whose controller manages a NetworkPolicy; '' = this policy
 * may manage it. An earlier policy of the same name does not count: the garbage collector has not
 * deleted its NetworkPolicy yet, and until then it is adopted, so that the Pods are never without.
 */
export function foreignOwnerOf(policy: FqdnPolicy, existing: ApiObject): string {
  const { api, name, uid } = policy
  const references = objectsIn(metadataOf(existing).ownerReferences)
  const controller = references.find((one) => one.controller === true)
  if (controller === undefined || controller.uid === uid) return ''
  const [kind, owner] = [textOf(controller, 'kind'), textOf(controller, 'name')]
  const isEarlier = textOf(controller, 'apiVersion').split('/')[0] === api.group && kind === KIND
  return isEarlier && owner === name ? '' : `${kind} ${owner}`
}

/** True if a controller made or adopted the NetworkPolicy for this policy, this one or an earlier one. */
export function isMadeFor(policy: FqdnPolicy, existing: ApiObject): boolean {
  const metadata = metadataOf(existing)
  if (foreignOwnerOf(policy, existing) !== '') return false
  const isOwned = objectsIn(metadata.ownerReferences).some(({ uid }) => uid === policy.uid)
  return isOwned || textOf(metadata.annotations, OWNED_BY) === policy.name
}

function referenceTo({ api, name, uid }: FqdnPolicy): ApiObject {
  return {
    apiVersion: `${api.group}/${api.version}`,
    kind: KIND,
    name,
    uid,
    controller: true,
    blockOwnerDeletion: true,
  }
}

/** Without the empty lists and mappings that the API server omits. */
function prune(value: JsonValue | undefined): JsonValue {
  if (Array.isArray(value)) return value.map((item) => prune(item))
  if (!isObject(value)) return value ?? null
  const entries = Object.entries(value).map(([key, item]) => [key, prune(item)] as const)
  return Object.fromEntries(entries.filter(([, item]) => !isEmpty(item)))
}

function isEmpty(value: JsonValue): boolean {
  if (value === null) return true
  if (Array.isArray(value)) return value.length === 0
  return isObject(value) && Object.keys(value).length === 0
}
