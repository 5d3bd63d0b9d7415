import type { Clock } from '../../base/clock.ts'
import { runInSlices } from '../../base/slices.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { ClusterWatch } from './cluster-watch.ts'
import { type ClusterZone, ClusterZones, type ZonesOptions } from './cluster-zones.ts'
import type { ClusterChanges } from './object-store.ts'
import type { EndpointsTrigger } from './packed.ts'

export interface FollowedZonesOptions extends ZonesOptions {
  readonly watch: ClusterWatch
  /** Called with the seconds from a change of the endpoints of a headless Service to answers with it. */
  readonly onProgrammed: (seconds: number) => void
  readonly log: Logger
  readonly clock: Clock
}

/**
 * Zones with the names of a cluster, which follow its changes. Nothing is published until the cluster
 * was read. Directives with the same options share one, and so do both instances of a reload.
 */
export class FollowedZones {
  readonly zones: ClusterZones
  readonly #options: FollowedZonesOptions
  readonly #unsubscribe: () => void
  readonly #listeners = new Set<(changed: readonly ClusterZone[]) => void>()
  #markSynced: () => void = () => {}
  readonly #synced = new Promise<void>((resolve) => {
    this.#markSynced = resolve
  })
  readonly #startMs: number
  #isSynced = false
  #isClosed = false

  constructor(options: FollowedZonesOptions) {
    this.#options = options
    this.#startMs = options.clock.monotonic()
    this.zones = new ClusterZones(options)
    this.#unsubscribe = options.watch.subscribe((changes, triggers) => {
      return this.#apply(changes, triggers)
    })
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
    return this.#options.watch.reason || 'the cluster is not read yet'
  }

  /** Why the zones may be out of date; '' = they are not. */
  note(): string {
    const { watch } = this.#options
    const { reason } = watch
    if (!this.#isSynced || reason === '') return ''
    return `the zones are ${Math.floor(watch.staleMs / 1000)} s old: ${reason}`
  }

  /** Calls `listener` after each publish with the zones that changed, until the returned function is called. */
  onPublish(listener: (changed: readonly ClusterZone[]) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  close(): void {
    this.#isClosed = true
    this.#unsubscribe()
    this.#listeners.clear()
  }

  async #apply(changes: ClusterChanges, triggers: readonly EndpointsTrigger[]): Promise<void> {
    const { clock, onProgrammed } = this.#options
    await runInSlices(this.zones.apply(changes), clock)
    if (this.#isClosed) return
    const changed = this.zones.publish()
    for (const { changedMs } of triggers) onProgrammed(Math.max(0, clock.now() - changedMs) / 1000)
    for (const listener of this.#listeners) listener(changed)
    this.zones.settle()
    if (!this.#isSynced) this.#finishSync()
  }

  #finishSync(): void {
    const { clock, log } = this.#options
    const { names, usedOctets } = this.zones.image.stats
    const seconds = ((clock.monotonic() - this.#startMs) / 1000).toFixed(2)
    const memory = `${(usedOctets / 1_048_576).toFixed(1)} MB`
    log.info(
      `read ${names} names from Kubernetes, ${memory} of zones, in ${seconds} s`,
      'kubernetes-names-read',
    )
    this.#isSynced = true
    this.#markSynced()
  }
}
