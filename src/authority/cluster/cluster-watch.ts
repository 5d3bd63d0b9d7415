import type { Clock } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import { ResourceRegistry } from '../../base/resource-registry.ts'
import { type Guarded, guarding } from '../../base/telemetry/guard.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import type { ApiClient, ApiResource } from '../../kube/api.ts'
import { ListWatch } from '../../kube/list-watch.ts'
import { splitKey } from '../../kube/object-key.ts'
import { ObjectSink } from '../../kube/object-sink.ts'
import { type ClusterChanges, type FollowedPlural, ObjectStore } from './object-store.ts'
import { type EndpointsTrigger, triggerOf } from './packed.ts'

/** Which objects of a cluster are read. */
interface ClusterScope {
  /** Empty = all namespaces. */
  readonly namespaces: readonly string[]
  /** Label selector of Namespaces; '' = all. */
  readonly namespaceLabels: string
  /** Label selector of all other kinds; '' = all. */
  readonly labels: string
  readonly readsEndpoints: boolean
  readonly readsPods: boolean
}

interface ClusterWatchOptions {
  readonly scope: ClusterScope
  readonly api: ApiClient
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
}

/**
 * Applies changes. The first ones contain everything that there is. `triggers`: changes of the
 * endpoints of headless Services that caused them.
 */
type ApplyChanges = (
  changes: ClusterChanges,
  triggers: readonly EndpointsTrigger[],
) => Promise<void>

const RESOURCES: Readonly<Record<FollowedPlural, ApiResource>> = {
  namespaces: { group: '', version: 'v1', plural: 'namespaces' },
  services: { group: '', version: 'v1', plural: 'services' },
  endpointslices: { group: 'discovery.k8s.io', version: 'v1', plural: 'endpointslices' },
  pods: { group: '', version: 'v1', plural: 'pods' },
}

/**
 * The objects of one cluster that its names come from, kept up to date by watches of its API:
 *
 *     Namespaces, Services, EndpointSlices, Pods ─▶ store ─▶ changes, of one turn together ─┬─▶ zones
 *                                                                                           └─▶ zones
 *
 * Subscribers get nothing until all kinds were listed. If the API fails later, the last state is kept.
 * Directives and blocks with the same cluster and scope share one, and so do both instances of a reload.
 */
export class ClusterWatch {
  /** What subscribers share that serve the same names. */
  readonly resources: ResourceRegistry = new ResourceRegistry()
  readonly #options: ClusterWatchOptions
  readonly #store: ObjectStore
  readonly #watches: readonly ListWatch[]
  readonly #guarded: Guarded
  readonly #subscribers = new Set<ApplyChanges>()
  /** Subscribers that have got nothing yet. */
  readonly #newcomers = new Set<ApplyChanges>()
  /** Changes of endpoints that subscribers have not got yet. */
  #triggers: EndpointsTrigger[] = []
  #isStarted = false
  #isBusy = false
  #isClosed = false
  #startMs = 0

  constructor(options: ClusterWatchOptions) {
    const { namespaces, namespaceLabels, labels, readsEndpoints, readsPods } = options.scope
    this.#options = options
    this.#guarded = guarding(options.log, 'Applying changes of the cluster')
    this.#store = new ObjectStore(new Set(namespaces))
    const kinds: FollowedPlural[] = ['services']
    if (readsEndpoints) kinds.push('endpointslices')
    if (readsPods) kinds.push('pods')
    const scopes = namespaces.length === 0 ? [''] : [...new Set(namespaces)]
    this.#watches = [
      this.#watch('namespaces', '', namespaceLabels),
      ...kinds.flatMap((kind) => scopes.map((scope) => this.#watch(kind, scope, labels))),
    ]
  }

  /** Starts the watches, at the first call. */
  start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.#startMs = this.#options.clock.monotonic()
    for (const watch of this.#watches) void watch.run()
  }

  /** How long a start waits for its zones, if all directives together wait `startupMs` for the API. */
  waitMs(startupMs: number): number {
    const pastMs = this.#options.clock.monotonic() - this.#startMs
    return this.#isRead ? startupMs : Math.max(0, startupMs - pastMs)
  }

  /** Milliseconds for which the known state may be out of date; 0 = it is not. */
  get staleMs(): number {
    return Math.max(...this.#watches.map((watch) => watch.ageMs))
  }

  /** Why the state of the cluster is unknown or may be out of date; '' = it is neither. */
  get reason(): string {
    const reasons = this.#watches.map(({ reason }) => reason).filter((reason) => reason !== '')
    return [...new Set(reasons)].slice(0, 3).join('; ')
  }

  /** Passes all changes to `apply`, one call after the other, until the returned function is called. */
  subscribe(apply: ApplyChanges): () => void {
    this.#newcomers.add(apply)
    this.#schedule()
    return () => {
      this.#newcomers.delete(apply)
      this.#subscribers.delete(apply)
    }
  }

  close(): void {
    this.#isClosed = true
    for (const watch of this.#watches) watch.close()
    this.#subscribers.clear()
    this.#newcomers.clear()
  }

  get #isRead(): boolean {
    return this.#watches.every(({ isSynced }) => isSynced)
  }

  #watch(plural: FollowedPlural, namespace: string, labelSelector: string): ListWatch {
    return new ListWatch({
      ...this.#options,
      resource: RESOURCES[plural],
      namespace,
      labelSelector,
      sink: new ObjectSink({
        put: (object, isListed) => {
          this.#store.put(plural, object)
          if (plural === 'endpointslices' && !isListed) this.#noteTrigger(triggerOf(object))
        },
        remove: (key) => this.#store.remove(plural, splitKey(key)),
        keys: () => this.#store.keys(plural, namespace),
        settle: () => this.#schedule(),
      }),
      onProgress: () => this.#schedule(),
    })
  }

  /** What came before everything was read has no time of its own. */
  #noteTrigger(trigger: EndpointsTrigger | undefined): void {
    if (this.#isRead && trigger !== undefined) this.#triggers.push(trigger)
  }

  /** Passes on the changes of this turn together. */
  #schedule(): void {
    if (this.#isBusy || this.#isClosed) return
    if (!this.#isRead) return
    this.#isBusy = true
    setImmediate(() => void this.#guarded(() => this.#pass()))
  }

  /** Passes on the changes, and those that arrive meanwhile. */
  async #pass(): Promise<void> {
    try {
      while (!this.#isClosed && (this.#store.isChanged || this.#newcomers.size > 0)) {
        await this.#passOnce()
      }
      // Those that are left changed no record.
      this.#triggers = []
    } finally {
      this.#isBusy = false
    }
  }

  async #passOnce(): Promise<void> {
    const subscribers = this.#store.isChanged ? [...this.#subscribers] : []
    // Both at once: `all` contains the changes that `take` returns, and no later ones.
    const changes = this.#store.take()
    const triggers = this.#takeTriggers()
    const newcomers = [...this.#newcomers]
    const everything = newcomers.length === 0 ? undefined : this.#store.all()
    this.#newcomers.clear()
    for (const apply of newcomers) this.#subscribers.add(apply)
    for (const apply of subscribers) await this.#guarded(() => apply(changes, triggers))
    if (everything === undefined) return
    for (const apply of newcomers) await this.#guarded(() => apply(everything, triggers))
  }

  #takeTriggers(): readonly EndpointsTrigger[] {
    const triggers = this.#triggers.filter(({ namespace, service }) => {
      return this.#store.isHeadless(namespace, service)
    })
    this.#triggers = []
    return triggers
  }
}
