import type { ClientRules } from '../rules/rule.ts'
import { type LabelMap, selectsLabels } from './label-selector.ts'
import { endpointLabels, type Pod } from './pod.ts'
import type { Policy } from './policy.ts'

/** A Pod, and the Pods that are the same to all policies. */
export interface GroupedPod {
  readonly pod: Pod
  readonly workload: Workload
}

/** Pods of one namespace with the same labels and service account: the same policies select them. */
export class Workload {
  readonly namespace: string
  readonly pods = new Set<GroupedPod>()
  /** Those that select its Pods. */
  readonly policies = new Set<Policy>()
  /** Undefined = not compiled since `policies` changed. */
  rules: ClientRules | undefined
  readonly #pod: Pod
  #namespaceLabels: LabelMap
  #endpointLabels: LabelMap

  /** `pod`: any of the Pods. */
  constructor(pod: Pod, ofNamespace: LabelMap) {
    this.namespace = pod.namespace
    this.#pod = pod
    this.#namespaceLabels = ofNamespace
    this.#endpointLabels = endpointLabels(pod, ofNamespace)
  }

  /** Equal for Pods of one workload. */
  static keyOf({ namespace, labels, serviceAccount }: Pod): string {
    return JSON.stringify([namespace, serviceAccount, [...labels].sort(compareKeys)])
  }

  /** `policies` must be selected again afterwards. */
  setNamespaceLabels(labels: LabelMap): void {
    this.#namespaceLabels = labels
    this.#endpointLabels = endpointLabels(this.#pod, labels)
  }

  isSelectedBy({ subject: { namespace, namespaces, pods, labels } }: Policy): boolean {
    if (namespace !== '' && namespace !== this.namespace) return false
    const ofPod = labels === 'pod' ? this.#pod.labels : this.#endpointLabels
    return selectsLabels(namespaces, this.#namespaceLabels) && selectsLabels(pods, ofPod)
  }
}

function compareKeys([a]: readonly [string, string], [b]: readonly [string, string]): number {
  return a < b ? -1 : 1
}
