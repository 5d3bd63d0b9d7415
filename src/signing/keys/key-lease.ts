import type { Clock } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import type { ApiClient } from '../../kube/api.ts'
import { LeaderElector } from '../../kube/lease.ts'

interface KeyLeaseParts {
  readonly api: ApiClient
  readonly namespace: string
  /** That of the Secret, and of the Lease. */
  readonly name: string
  /** Different from the identity of every other process. */
  readonly identity: string
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly log: Logger
}

/**
 * Which server may change the keys of a Secret: the holder of the Lease with its namespace and name. All users of the
 * Secret in a process share it.
 */
export class KeyLease {
  readonly api: ApiClient
  readonly #place: string
  readonly #elector: LeaderElector
  readonly #listeners = new Set<() => void>()
  #closed: Promise<void> = Promise.resolve()

  constructor({ api, namespace, name, ...rest }: KeyLeaseParts) {
    this.api = api
    this.#place = `Lease ${namespace}/${name}`
    this.#elector = new LeaderElector({
      ...rest,
      api,
      namespace,
      name,
      onAcquire: () => {
        for (const listener of this.#listeners) listener()
      },
      // Asked before each change.
      onLose: () => {},
    })
    this.#elector.start()
  }

  get isHeld(): boolean {
    return this.#elector.isLeader
  }

  /** Why this server cannot get the lease; '' = it can, or another server holds it. */
  get fault(): string {
    const { reason } = this.#elector
    return reason === '' ? '' : `${this.#place}: ${reason}`
  }

  /** Who changes the keys, as a text. */
  get holderText(): string {
    const { holder } = this.#elector
    return holder === '' ? `${this.#place} has no holder yet` : `${holder} holds ${this.#place}`
  }

  /** Resolves once the lease is released, if this was the last user. */
  get closed(): Promise<void> {
    return this.#closed
  }

  /** Calls `listener` each time that this server gets the lease, until the returned function is called. */
  onAcquire(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  close(): void {
    this.#closed = this.#elector.close()
  }
}
