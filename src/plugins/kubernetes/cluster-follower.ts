import type { Random } from '../../base/random.ts'
import { runInSlices } from '../../base/slices.ts'
import type { Timers } from '../../base/timers.ts'
import type { ApiClient, ApiObject, ApiResource } from '../../kube/api.ts'
import { ListWatch, type ListWatchSink } from '../../kube/list-watch.ts'
import type { WatchEvent } from '../../kube/watch-event.ts'
import { guarding } from '../../telemetry/guard.ts'
import type { Logger } from '../../telemetry/log.ts'
import { type ClusterZone, ClusterZones, type ZonesOptions } from './cluster-zones.ts'
import { type ObjectKind, ObjectStore, objectName } from './object-store.ts'
import { type EndpointsTrigger, triggerOf } from './packed.ts'

export interface FollowerOptions extends ZonesOptions {
  readonly api: ApiClient
  /** Empty = all namespaces. */
  readonly namespaces: readonly string[]
  /** Label selector of Namespaces; '' = all. */
  readonly namespaceLabels: string
  /** Label selector of all other kinds; '' = all. */
  readonly labels: string
  readonly readsEndpoints: boolean
  /** Called with the seconds from a change of the endpoints of a headless Service to answers with it. */
  readonly onProgrammed: (seconds: number) => void
  readonly log: Logger
  readonly timers: Timers
  readonly random: Random
}

const RESOURCES: Readonly<Record<ObjectKind, ApiResource>> = {
  namespaces: { group: '', version: 'v1', plural: 'namespaces' },
  services: { group: '', version: 'v1', plural: 'services' },
  endpointslices: { group: 'discovery.k8s.io', version: 'v1', plural: 'endpointslices' },
  pods: { group: '', version: 'v1', plural: 'pods' },
}

/**
 * The zones of one cluster, kept up to date by watches of its API:
 *
 *     Namespaces, Services, EndpointSlices, Pods ─▶ store ─▶ changed Services ─▶ zone image
 *
 * Nothing is published until all kinds were listed. If the API fails later, the last state is kept.
 * Blocks with the same options share one, and so do both instances of a reload.
 */
export class ClusterFollower {
  readonly zones: ClusterZones
  readonly #options: FollowerOptions
  readonly #store: ObjectStore
  readonly #watches: readonly ListWatch[]
  readonly #listeners = new Set<(changed: readonly ClusterZone[]) => void>()
  #markSynced: () => void = () => {}
  readonly #synced = new Promise<void>((resolve) => {
    this.#markSynced = resolve
  })
  /** Changes of endpoints that are not published yet. */
  #triggers: EndpointsTrigger[] = []
  #isStarted = false
  #isSynced = false
  #isBusy = false
  #isClosed = false
  #startMs = 0

  constructor(options: FollowerOptions) {
    const { namespaces, pods, readsEndpoints } = options
    this.#options = options
    this.zones = new ClusterZones(options)
    this.#store = new ObjectStore(new Set(namespaces))
    const kinds: ObjectKind[] = ['services']
    if (readsEndpoints) kinds.push('endpointslices')
    if (pods === 'verified') kinds.push('pods')
    const scopes = namespaces.length === 0 ? [''] : [...new Set(namespaces)]
    this.#watches = [
      this.#watch('namespaces', '', options.namespaceLabels),
      ...kinds.flatMap((kind) => scopes.map((scope) => this.#watch(kind, scope, options.labels))),
    ]
  }

  /** Starts the watches, at the first call. */
  start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.#startMs = this.#options.clock.monotonic()
    for (const watch of this.#watches) void watch.run()
  }

  /** Resolves once the zones are published. Never rejects. */
  synced(): Promise<void> {
    return this.#synced
  }

  get isSynced(): boolean {
    return this.#isSynced
  }

  /** Why the zones are not served yet; '' = they are. */
  unreadyReason(): string {
    if (this.#isSynced) return ''
    return this.#reason() || 'the cluster is not read yet'
  }

  /** Why the zones may be out of date; '' = they are not. */
  note(): string {
    const reason = this.#isSynced ? this.#reason() : ''
    if (reason === '') return ''
    const ageMs = Math.max(...this.#watches.map((watch) => watch.ageMs))
    return `the zones are ${Math.floor(ageMs / 1000)} s old: ${reason}`
  }

  /** Calls `listener` after each publish with the zones that changed, until the returned function is called. */
  onPublish(listener: (changed: readonly ClusterZone[]) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  close(): void {
    this.#isClosed = true
    for (const watch of this.#watches) watch.close()
    this.#listeners.clear()
  }

  #reason(): string {
    const reasons = this.#watches.map(({ reason }) => reason).filter((reason) => reason !== '')
    return [...new Set(reasons)].slice(0, 3).join('; ')
  }

  #watch(plural: ObjectKind, namespace: string, labelSelector: string): ListWatch {
    return new ListWatch({
      ...this.#options,
      resource: RESOURCES[plural],
      namespace,
      labelSelector,
      sink: new KindSink(
        this.#store,
        plural,
        namespace,
        () => this.#schedule(),
        (trigger) => this.#triggers.push(trigger),
      ),
      onProgress: () => this.#schedule(),
    })
  }

  /** Writes the changes of this turn together. */
  #schedule(): void {
    if (this.#isBusy || this.#isClosed) return
    if (!this.#isSynced && !this.#watches.every(({ isSynced }) => isSynced)) return
    this.#isBusy = true
    const guarded = guarding(this.#options.log, 'Applying changes of the cluster')
    setImmediate(() => {
      void guarded(() => this.#commit()).then(() => {
        this.#isBusy = false
      })
    })
  }

  /** Publishes the changes, and those that arrive meanwhile. */
  async #commit(): Promise<void> {
    const { clock } = this.#options
    while (!this.#isClosed && (this.#store.isChanged || !this.#isSynced)) {
      const triggers = this.#triggers
      this.#triggers = []
      await runInSlices(this.zones.apply(this.#store.take()), clock)
      if (this.#isClosed) return
      const changed = this.zones.publish()
      this.#measure(triggers)
      for (const listener of this.#listeners) listener(changed)
      this.zones.settle()
      if (!this.#isSynced) this.#finishSync()
    }
  }

  #measure(triggers: readonly EndpointsTrigger[]): void {
    const { clock, onProgrammed } = this.#options
    for (const { namespace, service, changedMs } of triggers) {
      if (!this.#store.isHeadless(namespace, service)) continue
      onProgrammed(Math.max(0, clock.now() - changedMs) / 1000)
    }
  }

  #finishSync(): void {
    const { clock, log } = this.#options
    const { names, usedOctets } = this.zones.image.stats
    const seconds = ((clock.monotonic() - this.#startMs) / 1000).toFixed(2)
    const memory = `${(usedOctets / 1_048_576).toFixed(1)} MB`
    log.info(`read ${names} names from Kubernetes, ${memory} of zones, in ${seconds} s`)
    this.#isSynced = true
    this.#markSynced()
  }
}

/** Puts one kind of objects, of one namespace or all, into the store. */
class KindSink implements ListWatchSink {
  readonly #store: ObjectStore
  readonly #plural: ObjectKind
  /** '' = all namespaces. */
  readonly #namespace: string
  readonly #onChange: () => void
  readonly #onTrigger: (trigger: EndpointsTrigger) => void
  #present = new Set<string>()

  constructor(
    store: ObjectStore,
    plural: ObjectKind,
    namespace: string,
    onChange: () => void,
    onTrigger: (trigger: EndpointsTrigger) => void,
  ) {
    this.#store = store
    this.#plural = plural
    this.#namespace = namespace
    this.#onChange = onChange
    this.#onTrigger = onTrigger
  }

  beginList(): void {
    this.#present = new Set()
  }

  put(objects: readonly ApiObject[]): void {
    for (const object of objects) {
      const { namespace, name } = this.#store.put(this.#plural, object)
      this.#present.add(`${namespace}/${name}`)
    }
    this.#onChange()
  }

  endList(): void {
    const known = [...this.#store.names(this.#plural, this.#namespace)]
    for (const object of known) {
      const isPresent = this.#present.has(`${object.namespace}/${object.name}`)
      if (!isPresent) this.#store.remove(this.#plural, object)
    }
    this.#present = new Set()
    this.#onChange()
  }

  apply(events: readonly WatchEvent[]): void {
    for (const { isDeleted, object } of events) {
      if (isDeleted) this.#store.remove(this.#plural, objectName(object))
      else this.#store.put(this.#plural, object)
      const trigger = this.#plural === 'endpointslices' ? triggerOf(object) : undefined
      if (trigger !== undefined && !isDeleted) this.#onTrigger(trigger)
    }
    this.#onChange()
  }
}
