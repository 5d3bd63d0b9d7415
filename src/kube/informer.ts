import type { Clock } from '../base/clock.ts'
import type { Random } from '../base/random.ts'
import { guarding } from '../base/telemetry/guard.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { Timers } from '../base/timers.ts'
import { type ApiClient, type ApiObject, type ApiResource, isObject, textOf } from './api.ts'
import { ListWatch } from './list-watch.ts'
import { keyOf } from './object-key.ts'
import { ObjectSink } from './object-sink.ts'

export interface InformerOptions {
  readonly api: ApiClient
  readonly resource: ApiResource
  /** Other versions with the same schema; absent = none. If the API lacks one version, the next one is read. */
  readonly equalVersions?: readonly string[] | undefined
  /** Empty = all namespaces, also for kinds without namespaces. */
  readonly namespaces: readonly string[]
  /** '' = every object. */
  readonly labelSelector: string
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  /**
   * Selects the part of an object that is cached. Default: all except `metadata.managedFields`,
   * which is half of many objects.
   */
  readonly trim?: (object: ApiObject) => ApiObject
}

/**
 * Called after the cache has changed. `key`: as in keyOf. `isListed`: the object comes from a list,
 * which may combine several changes; a watch reports each change separately.
 */
export interface InformerListener {
  onAdd?(key: string, object: ApiObject, isListed: boolean): void
  onUpdate?(key: string, object: ApiObject, before: ApiObject, isListed: boolean): void
  /** `before`: the last known object. */
  onDelete?(key: string, before: ApiObject): void
  /** The watch is re-established; requests that failed before may now succeed. */
  onReturn?(): void
}

/**
 * A cache of the objects of a kind, by key, with listeners for changes. The next list detects
 * objects that were deleted while the watch was interrupted. Cached objects are shared and must not
 * be changed.
 */
export class Informer {
  /** One for each namespace; for metrics. */
  readonly watches: readonly ListWatch[]
  readonly #options: InformerOptions
  readonly #cache = new Map<string, ApiObject>()
  readonly #listeners = new Set<InformerListener>()
  #markSynced: () => void = () => {}
  readonly #synced = new Promise<void>((resolve) => {
    this.#markSynced = resolve
  })

  constructor(options: InformerOptions) {
    this.#options = options
    const { namespaces } = options
    const scopes = namespaces.length === 0 ? [''] : [...new Set(namespaces)]
    this.watches = scopes.map(
      (namespace) =>
        new ListWatch({
          ...options,
          namespace,
          sink: this.#sinkOf(namespace),
          onProgress: () => this.#progress(),
          onReturn: () => {
            for (const listener of this.#listeners) this.#notify(() => listener.onReturn?.())
          },
        }),
    )
  }

  start(): void {
    for (const watch of this.watches) void watch.run()
  }

  close(): void {
    for (const watch of this.watches) watch.close()
  }

  /** The kind, in the version that the API serves. */
  get resource(): ApiResource {
    return this.watches[0]?.resource ?? this.#options.resource
  }

  /** True once every namespace was listed. */
  get isSynced(): boolean {
    return this.watches.every((watch) => watch.isSynced)
  }

  /**
   * Resolves once every namespace was listed: before that, a missing object may exist. Never
   * rejects.
   */
  synced(): Promise<void> {
    return this.#synced
  }

  /** Why a namespace is not followed just now; '' = all are followed. */
  get reason(): string {
    return this.watches.find((watch) => watch.reason !== '')?.reason ?? ''
  }

  get size(): number {
    return this.#cache.size
  }

  get(key: string): ApiObject | undefined {
    return this.#cache.get(key)
  }

  objects(): Iterable<ApiObject> {
    return this.#cache.values()
  }

  /**
   * Calls `onAdd` for all cached objects at once, then reports changes. The returned function
   * unsubscribes.
   */
  subscribe(listener: InformerListener): () => void {
    for (const [key, object] of this.#cache) this.#notify(() => listener.onAdd?.(key, object, true))
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  #sinkOf(namespace: string): ObjectSink {
    const prefix = namespace === '' ? '' : `${namespace}/`
    return new ObjectSink({
      put: (object, isListed) => this.#put(object, isListed),
      remove: (key) => this.#remove(key),
      keys: () => [...this.#cache.keys()].filter((key) => key.startsWith(prefix)),
    })
  }

  #put(raw: ApiObject, isListed: boolean): void {
    const key = keyOf(raw)
    const before = this.#cache.get(key)
    if (before !== undefined && isSame(before, raw)) return
    const object = (this.#options.trim ?? withoutManagedFields)(raw)
    // Same name, new UID: report the old object as deleted first.
    if (before !== undefined && uidOf(before) !== uidOf(object)) this.#remove(key)
    const known = this.#cache.get(key)
    this.#cache.set(key, object)
    for (const listener of this.#listeners) {
      if (known === undefined) this.#notify(() => listener.onAdd?.(key, object, isListed))
      else this.#notify(() => listener.onUpdate?.(key, object, known, isListed))
    }
  }

  #remove(key: string): void {
    const before = this.#cache.get(key)
    if (before === undefined) return
    this.#cache.delete(key)
    for (const listener of this.#listeners) this.#notify(() => listener.onDelete?.(key, before))
  }

  /** Catches the error of a listener: the cache is correct, and the other listeners are called. */
  #notify(run: () => void): void {
    const what = `Applying changed ${this.#options.resource.plural}`
    void guarding(this.#options.log, what)(run)
  }

  #progress(): void {
    if (this.isSynced) this.#markSynced()
  }
}

/** True if the object has not changed. */
function isSame(before: ApiObject, now: ApiObject): boolean {
  const version = textOf(now.metadata, 'resourceVersion')
  return version === textOf(before.metadata, 'resourceVersion') && uidOf(before) === uidOf(now)
}

function uidOf(object: ApiObject): string {
  return textOf(object.metadata, 'uid')
}

function withoutManagedFields(object: ApiObject): ApiObject {
  if (!isObject(object.metadata) || object.metadata.managedFields === undefined) return object
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata }
}
