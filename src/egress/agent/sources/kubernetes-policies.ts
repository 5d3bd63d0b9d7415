import type { Random } from '../../../base/random.ts'
import type { Timers } from '../../../base/timers.ts'
import type { ApiClient } from '../../../kube/api.ts'
import { ListWatch } from '../../../kube/list-watch.ts'
import { ObjectSink } from '../../../kube/object-sink.ts'
import { NAMESPACES, PODS, POLICY_KINDS, type PolicyKind } from '../../policies/policy-kinds.ts'
import { PolicyFeed, type PolicyFeedOptions } from './policy-feed.ts'
import type { ClientsListener, ListedProblem, PolicySource } from './policy-source.ts'

/** Most reasons that are shown. */
const REASONS_MAX = 3

interface KubernetesPoliciesOptions extends PolicyFeedOptions {
  readonly api: ApiClient
  /** Name of the Node whose Pods are clients. */
  readonly node: string
  readonly timers: Timers
  readonly random: Random
}

/**
 * The Pods of one Node, and the policies of a cluster, kept up to date by watches of its API. Synced
 * once Pods, Namespaces and each kind of policies were listed; a kind that the API lacks counts as
 * listed, and is tried again. If the API fails later, the known state is kept.
 */
export class KubernetesPolicies implements PolicySource {
  readonly #feed: PolicyFeed
  /** Of Pods and Namespaces. */
  readonly #clients: readonly ListWatch[]
  readonly #policies: readonly ListWatch[]
  #isStarted = false

  constructor(options: KubernetesPoliciesOptions) {
    const { api, node, timers, random, ...parts } = options
    const feed = new PolicyFeed(parts, () => '')
    this.#feed = feed
    const watch = (kind: PolicyKind, fieldSelector = ''): ListWatch => {
      return new ListWatch({
        ...options,
        resource: kind.resource,
        equalVersions: kind.equalVersions,
        namespace: '',
        labelSelector: '',
        fieldSelector,
        sink: new ObjectSink({
          put: (object) => feed.put(kind, object),
          remove: (key) => feed.remove(kind, key),
          keys: () => feed.keys(kind),
        }),
        onProgress: () => this.#progress(),
      })
    }
    this.#clients = [watch(PODS, `spec.nodeName=${node}`), watch(NAMESPACES)]
    this.#policies = POLICY_KINDS.map((kind) => watch(kind))
  }

  start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    for (const watch of [...this.#clients, ...this.#policies]) void watch.run()
  }

  onChange(listener: ClientsListener): () => void {
    return this.#feed.onChange(listener)
  }

  get isSynced(): boolean {
    return this.#feed.isReady
  }

  get problems(): readonly ListedProblem[] {
    return this.#feed.problems
  }

  get reason(): string {
    // A cluster rarely has all kinds of policies.
    const watches = [...this.#clients, ...this.#policies.filter((watch) => !isAbsent(watch))]
    const reasons = watches.map(({ reason }) => reason).filter((reason) => reason !== '')
    if (reasons.length > 0) return reasons.slice(0, REASONS_MAX).join('; ')
    return this.isSynced ? '' : 'policies are not read yet'
  }

  close(): void {
    for (const watch of [...this.#clients, ...this.#policies]) watch.close()
    this.#feed.close()
  }

  #progress(): void {
    const areClients = this.#clients.every(({ isSynced }) => isSynced)
    const arePolicies = this.#policies.every((watch) => {
      // Not 403: without the right to read a kind, its policies would be removed.
      return watch.isSynced || isAbsent(watch)
    })
    if (areClients && arePolicies) this.#feed.setReady()
  }
}

/** True if the API has no such kind. */
function isAbsent({ isSynced, failureStatus }: ListWatch): boolean {
  return !isSynced && failureStatus === 404
}
