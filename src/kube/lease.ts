import type { Clock } from '../base/clock.ts'
import type { Random } from '../base/random.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { Timers } from '../base/timers.ts'
import { type ApiClient, ApiError, type ApiObject, clip, isObject, textOf } from './api.ts'
import { microTime } from './micro-time.ts'
import { isAlreadyThere, isConflict, isNotFound, type ObjectRef, Objects } from './objects.ts'

const LEASES = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' }
/** Validity of a lease after its last renewal, as other electors see it. */
const DURATION_SECONDS = 15
/**
 * A holder that could not renew for this long stops, well before another elector may acquire the
 * lease.
 */
const RENEW_DEADLINE_MS = 10_000
const RETRY_MS = 2000
/** Longest wait for a lease of another holder, whose duration may have any value. */
const FOREIGN_SECONDS_MAX = 3600

interface LeaderElectorOptions {
  readonly api: ApiClient
  readonly namespace: string
  readonly name: string
  /** Different from the identity of every other process. */
  readonly identity: string
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly log: Logger
  readonly onAcquire: () => void
  /**
   * Called immediately, even if a request hangs: another elector may become leader a few seconds
   * later.
   */
  readonly onLose: (reason: string) => void
  /** Default 15. */
  readonly durationSeconds?: number
  /** Shorter than the duration. Default 10 s. */
  readonly renewDeadlineMs?: number
  /** Shorter than the deadline. Default 2 s. */
  readonly retryMs?: number
}

/**
 * Acquires and renews a Lease of coordination.k8s.io/v1. At most one elector of that name is
 * leader. Times of other processes are never compared with ours. A lease has expired if it was not
 * seen to change for its whole duration, on our own monotonic clock. A leader stays leader while it
 * renews in time, measured from before the request was sent.
 */
export class LeaderElector {
  readonly #options: LeaderElectorOptions
  readonly #ref: ObjectRef
  readonly #objects: Objects
  /** The lease as last seen. */
  #seen: ApiObject | undefined
  #seenMs = 0
  #heldUntilMs = Number.NEGATIVE_INFINITY
  #wasReported = false
  #reason = ''
  #isClosed = false
  #cancelLoss: () => void = () => {}
  #wake: () => void = () => {}
  #ended: Promise<void> = Promise.resolve()

  constructor(options: LeaderElectorOptions) {
    this.#options = options
    const { api, timers, namespace, name } = options
    const { renewDeadlineMs = RENEW_DEADLINE_MS } = options
    this.#ref = { resource: LEASES, namespace, name }
    // After a request that hangs, a holder has time for another one.
    this.#objects = new Objects({ api, timers, timeoutMs: renewDeadlineMs / 2 })
  }

  /**
   * True while no other process can be leader. Must be checked before each write: the process may
   * have been suspended since `onAcquire`.
   */
  get isLeader(): boolean {
    return this.#wasReported && this.#options.clock.monotonic() < this.#heldUntilMs
  }

  /** The last known holder of the lease; '' = none. */
  get holder(): string {
    return textOf(this.#seen?.spec, 'holderIdentity')
  }

  /**
   * Why the lease can't be acquired or renewed just now; '' = it can, or another process holds it.
   */
  get reason(): string {
    return this.#reason
  }

  start(): void {
    this.#ended = this.#run()
  }

  /**
   * Releases the lease if it is ours, so that another elector can acquire it at once. Call it after
   * the work has ended. Never rejects.
   */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#wake()
    await this.#ended
    this.#cancelLoss()
    this.#wasReported = false
    // Only if the lease has not changed: another elector may hold it by now.
    if (this.#seen !== undefined && this.#isOurs) await this.#release(this.#seen)
  }

  async #run(): Promise<void> {
    const { random, retryMs = RETRY_MS } = this.#options
    while (!this.#isClosed) {
      try {
        await this.#attempt()
        this.#reason = ''
      } catch (error) {
        this.#fail(error)
      }
      // Waiting electors are spread over time; the holder must not lose any.
      const jitterMs = this.#wasReported ? 0 : random.below(retryMs + 1)
      if (!this.#isClosed) await this.#wait(retryMs + jitterMs)
    }
  }

  /** Renews the lease, or acquires it if it is free. */
  async #attempt(): Promise<void> {
    const { clock } = this.#options
    const sentMs = clock.monotonic()
    if (this.#wasReported && this.#seen !== undefined) {
      try {
        this.#take(await this.#objects.replace(this.#ref, this.#written(this.#seen)), sentMs)
        return
      } catch (error) {
        if (!isConflict(error) && !isNotFound(error, this.#ref)) throw error
      }
    }
    const lease = await this.#objects.get(this.#ref)
    this.#observe(lease)
    if (this.#wasReported && !this.#isOurs) {
      this.#lose(
        this.holder === '' ? 'another process removed the lease' : `${this.holder} took the lease`,
      )
    }
    if (!this.#isFree()) return
    // The lease may have been free for long, but is ours only from the time of this request.
    const writtenMs = clock.monotonic()
    const body = this.#written(lease)
    try {
      const { namespace } = this.#ref
      const written =
        lease === undefined
          ? await this.#objects.create(LEASES, namespace, body)
          : await this.#objects.replace(this.#ref, body)
      this.#take(written, writtenMs)
    } catch (error) {
      // Another elector was faster; the next attempt reads its identity.
      if (!isConflict(error) && !isAlreadyThere(error)) throw error
    }
  }

  get #isOurs(): boolean {
    return this.holder === this.#options.identity
  }

  /** Stores the lease, and when it was seen to change. */
  #observe(lease: ApiObject | undefined): void {
    const version = textOf(lease?.metadata, 'resourceVersion')
    if (this.#seen !== undefined && version === textOf(this.#seen.metadata, 'resourceVersion'))
      return
    this.#seen = lease
    this.#seenMs = this.#options.clock.monotonic()
  }

  #isFree(): boolean {
    if (this.holder === '' || this.#isOurs) return true
    const spec = this.#seen?.spec
    const notified = isObject(spec) ? Number(spec.leaseDurationSeconds) : 0
    const seconds = notified > 0 ? Math.min(notified, FOREIGN_SECONDS_MAX) : DURATION_SECONDS
    return this.#options.clock.monotonic() - this.#seenMs >= seconds * 1000
  }

  /** The lease with our desired content. */
  #written(lease: ApiObject | undefined): ApiObject {
    const { clock, identity, namespace, name, durationSeconds = DURATION_SECONDS } = this.#options
    const spec = isObject(lease?.spec) ? lease.spec : {}
    const now = microTime(clock.now())
    const isOurs = textOf(spec, 'holderIdentity') === identity
    const transitions = Number(spec.leaseTransitions ?? -1) || 0
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: lease?.metadata ?? { namespace, name },
      spec: {
        ...spec,
        holderIdentity: identity,
        leaseDurationSeconds: durationSeconds,
        renewTime: now,
        acquireTime: isOurs ? (spec.acquireTime ?? now) : now,
        leaseTransitions: isOurs ? transitions : transitions + 1,
      },
    }
  }

  /** Marks the lease as ours as of `sentMs`. */
  #take(lease: ApiObject, sentMs: number): void {
    const { clock, timers, log, onAcquire, renewDeadlineMs = RENEW_DEADLINE_MS } = this.#options
    this.#observe(lease)
    const wasOver = clock.monotonic() >= this.#heldUntilMs
    this.#heldUntilMs = sentMs + renewDeadlineMs
    const leftMs = this.#heldUntilMs - clock.monotonic()
    if (leftMs <= 0 || this.#isClosed) return
    // This process was suspended and skipped writes. Only a new leader session makes up for them.
    if (wasOver) this.#lose('it was renewed too late')
    this.#cancelLoss()
    this.#cancelLoss = timers.after(leftMs, () => {
      this.#lose(`it was not renewed for ${renewDeadlineMs / 1000} s`)
    })
    if (this.#wasReported) return
    this.#wasReported = true
    log.info(`lease ${this.#ref.namespace}/${this.#ref.name}: ours`, 'lease-acquired')
    onAcquire()
  }

  #lose(cause: string): void {
    this.#cancelLoss()
    if (!this.#wasReported) return
    this.#wasReported = false
    const why = this.#reason === '' ? cause : `${cause}: ${this.#reason}`
    this.#options.log.warning(
      `lease ${this.#ref.namespace}/${this.#ref.name}: lost, ${why}`,
      'lease-lost',
    )
    this.#options.onLose(why)
  }

  #fail(error: unknown): void {
    const { log } = this.#options
    const status = error instanceof ApiError ? error.status : 0
    const cure = status === 403 ? '; this account needs get, create and update of leases' : ''
    const reason = `${clip(error instanceof Error ? error.message : String(error))}${cure}`
    if (reason !== this.#reason) {
      log.warning(
        `lease ${this.#ref.namespace}/${this.#ref.name}: ${reason}; retrying`,
        'lease-failed',
      )
    }
    this.#reason = reason
  }

  async #release(lease: ApiObject): Promise<void> {
    const { clock, log } = this.#options
    const spec = isObject(lease.spec) ? lease.spec : {}
    const released = { ...spec, holderIdentity: '', leaseDurationSeconds: 1 }
    try {
      const renewTime = microTime(clock.now())
      await this.#objects.replace(this.#ref, { ...lease, spec: { ...released, renewTime } })
    } catch (error) {
      const cause = error instanceof Error ? error.message : String(error)
      log.debug(
        `lease ${this.#ref.namespace}/${this.#ref.name} not released: ${clip(cause)}`,
        'lease-not-released',
      )
    }
  }

  #wait(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.timers.after(delayMs, resolve)
      this.#wake = () => {
        cancel()
        resolve()
      }
    })
  }
}
