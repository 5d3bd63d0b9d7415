import { type ApiObject, textOf } from '../../../kube/api.ts'
import { isNotFound, type ObjectRef, type Objects } from '../../../kube/objects.ts'
import type { Acknowledgement, Sink } from '../../gate.ts'
import type { FqdnPolicy } from '../../policies/fqdn/fqdn-policy.ts'
import type { NetworkPolicySpec } from '../../policies/fqdn/network-policy.ts'
import { planNetworkPolicy } from './network-policy-plan.ts'

export const NETWORK_POLICIES = {
  group: 'networking.k8s.io',
  version: 'v1',
  plural: 'networkpolicies',
}

/** What the NetworkPolicy of a policy must be. */
interface NetworkPolicyUpdate {
  readonly policy: FqdnPolicy
  /** The NetworkPolicy as far as is known; undefined = it does not exist. It has no foreign owner. */
  readonly existing: ApiObject | undefined
  readonly spec: NetworkPolicySpec
}

/** What an update did. */
export type NetworkPolicyChange = 'created' | 'adopted' | 'updated' | 'unchanged'

interface NetworkPolicySinkParts {
  readonly objects: Pick<Objects, 'create' | 'replace'>
  /** Gets the responses of the API. */
  readonly networkPolicies: {
    noteWritten(object: ApiObject): void
    noteDeleted(object: ApiObject): void
  }
  /** Throws if this process may not write. */
  readonly checkLease: () => void
  /** An update is in force. */
  readonly onApplied: (policy: FqdnPolicy, change: NetworkPolicyChange) => void
}

/** Keeps the NetworkPolicy of one FQDNNetworkPolicy. Rejects with ApiError, or as `checkLease`. */
export class NetworkPolicySink implements Sink<NetworkPolicyUpdate> {
  readonly #parts: NetworkPolicySinkParts
  /** The specification that was written last, and the version that the NetworkPolicy got. */
  #written: { readonly text: string; readonly version: string } | undefined

  constructor(parts: NetworkPolicySinkParts) {
    this.#parts = parts
  }

  async apply({ policy, existing, spec }: NetworkPolicyUpdate): Acknowledgement {
    const { onApplied } = this.#parts
    const plan = planNetworkPolicy(policy, existing, spec)
    const text = JSON.stringify(plan.kind === 'replace' ? plan.object.spec : spec)
    // The API may store something else than what was written. It would be written again and again.
    const isWritten = this.#written?.text === text && this.#written.version === versionOf(existing)
    if (plan.kind === 'none' || isWritten) {
      onApplied(policy, 'unchanged')
      return ''
    }
    const written = await this.#write(policy, existing, plan.object)
    this.#written = { text, version: versionOf(written) }
    if (existing === undefined) onApplied(policy, 'created')
    else onApplied(policy, plan.isAdopted ? 'adopted' : 'updated')
    return ''
  }

  /** Makes the policy the owner of a NetworkPolicy, whose specification stays as it is. */
  async adopt(policy: FqdnPolicy, existing: ApiObject): Promise<void> {
    const plan = planNetworkPolicy(policy, existing, existing.spec)
    if (plan.kind !== 'none') await this.#write(policy, existing, plan.object)
  }

  async #write(
    { namespace, name }: FqdnPolicy,
    existing: ApiObject | undefined,
    object: ApiObject,
  ): Promise<ApiObject> {
    const { objects, networkPolicies, checkLease } = this.#parts
    checkLease()
    const ref: ObjectRef = { resource: NETWORK_POLICIES, namespace, name }
    try {
      const written =
        existing === undefined
          ? await objects.create(NETWORK_POLICIES, namespace, object)
          : await objects.replace(ref, object)
      networkPolicies.noteWritten(written)
      return written
    } catch (error) {
      if (existing !== undefined && isNotFound(error, ref)) networkPolicies.noteDeleted(existing)
      throw error
    }
  }
}

function versionOf(object: ApiObject | undefined): string {
  return textOf(object?.metadata, 'resourceVersion')
}
