import type { Random } from '../../base/random.ts'
import type { Timers } from '../../base/timers.ts'
import {
  NAMESPACES,
  PODS,
  POLICY_KINDS,
  type PolicyKind,
} from '../../egress/policies/policy-kinds.ts'
import type { ApiClient, ApiObject } from '../../kube/api.ts'
import { ListWatch, type ListWatchSink } from '../../kube/list-watch.ts'
import { keyOf } from '../../kube/object-key.ts'
import type { WatchEvent } from '../../kube/watch-event.ts'
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
    this.#feed = new PolicyFeed(parts, () => '')
    const watch = (kind: PolicyKind, fieldSelector = ''): ListWatch => {
      return new ListWatch({
        ...options,
        resource: kind.resource,
        namespace: '',
        labelSelector: '',
        fieldSelector,
        sink: new KindSink(this.#feed, kind),
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

/** Puts one kind of objects into the feed. */
class KindSink implements ListWatchSink {
  readonly #feed: PolicyFeed
  readonly #kind: PolicyKind
  #present = new Set<string>()

  constructor(feed: PolicyFeed, kind: PolicyKind) {
    this.#feed = feed
    this.#kind = kind
  }

  beginList(): void {
    this.#present = new Set()
  }

  put(objects: readonly ApiObject[]): void {
    for (const object of objects) this.#present.add(this.#feed.put(this.#kind, object))
  }

  endList(): void {
    for (const key of this.#feed.keys(this.#kind)) {
      if (!this.#present.has(key)) this.#feed.remove(this.#kind, key)
    }
    this.#present = new Set()
  }

  apply(events: readonly WatchEvent[]): void {
    for (const { isDeleted, object } of events) {
      const key = isDeleted ? keyOf(object) : this.#feed.put(this.#kind, object)
      if (isDeleted) this.#feed.remove(this.#kind, key)
      // During a list, an object may be deleted after it was put.
      if (isDeleted) this.#present.delete(key)
      else this.#present.add(key)
    }
  }
}
