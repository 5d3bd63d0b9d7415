import type { MetricsRegistry } from '../base/telemetry/metrics.ts'
import { EventRecorder } from '../kube/event-recorder.ts'
import { LeaderElector } from '../kube/lease.ts'
import type { ClusterEnv } from './cluster/cluster.ts'
import type { Controller, ControllerEnv } from './controller.ts'
import type { LeaseSettings } from './settings.ts'

/** Name of the Lease that all operators use. */
const LEASE = 'sextant-operator'
const CONTROLLER = 'kuadrant.io/sextant-operator'
/** Milliseconds that running writes get when the operator ends. */
const CLOSE_MS = 5000

/**
 * Runs the controllers of a cluster:
 *
 *     caches filled ─▶ lease ─▶ controllers work ─▶ (lease lost) end ─▶ lease …
 */
export class Operator {
  readonly #controllers: readonly Controller[]
  readonly #settings: LeaseSettings
  readonly #env: ControllerEnv
  #elector: LeaderElector | undefined
  /** The end of the previous term. */
  #ended: Promise<unknown> = Promise.resolve()
  #isLeading = false
  #isPrepared = false
  #isClosed = false

  /** `build` makes the controllers, once. */
  constructor(
    env: ClusterEnv,
    settings: LeaseSettings,
    registry: MetricsRegistry,
    build: (env: ControllerEnv) => readonly Controller[],
  ) {
    const { identity: instance } = settings
    const events = new EventRecorder({ ...env, controller: CONTROLLER, instance })
    this.#settings = settings
    this.#env = { ...env, events, registry, mayWrite: () => this.#mayWrite() }
    this.#controllers = build(this.#env)
    this.#exportMetrics()
  }

  /** Resolves once the controllers work, here or in another operator. */
  async start(): Promise<void> {
    await Promise.all(this.#controllers.map((controller) => controller.prepare()))
    if (this.#isClosed) return
    this.#isPrepared = true
    const { leaseNamespace, identity } = this.#settings
    if (leaseNamespace === undefined) {
      this.#begin()
      return
    }
    this.#elector = new LeaderElector({
      ...this.#env,
      namespace: leaseNamespace,
      name: LEASE,
      identity,
      onAcquire: () => this.#begin(),
      onLose: () => this.#end(),
    })
    this.#elector.start()
  }

  /** Why the operator is not ready; '' = it is. */
  unreadyReason(): string {
    if (this.#isPrepared) return ''
    const reason = this.#reasons().join('; ')
    return `the cluster has not been listed yet${reason === '' ? '' : `: ${reason}`}`
  }

  /** Information about an operator that is ready; '' = none. */
  note(): string {
    const leader = this.#elector?.holder ?? ''
    const isWaiting = this.#elector !== undefined && !this.#elector.isLeader
    const holder = leader === '' ? '' : ` of ${leader}`
    const waiting = isWaiting ? [`waiting for the lease${holder}`] : []
    return [...this.#reasons(), ...waiting].join('; ')
  }

  /** Ends the work of the controllers and releases the lease. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#end()
    const cancel = this.#env.timers.after(CLOSE_MS, () => this.#closeAll())
    if (!this.#isPrepared) this.#closeAll()
    await this.#ended
    cancel()
    await this.#elector?.close()
    this.#closeAll()
  }

  #closeAll(): void {
    for (const controller of this.#controllers) controller.close()
    this.#env.events.close()
  }

  #begin(): void {
    void this.#ended.then(() => {
      if (this.#isClosed || this.#isLeading || !this.#mayWrite()) return
      this.#isLeading = true
      for (const controller of this.#controllers) controller.begin()
    })
  }

  #end(): void {
    if (!this.#isLeading) return
    this.#isLeading = false
    this.#ended = Promise.all(this.#controllers.map((controller) => controller.end()))
  }

  #mayWrite(): boolean {
    return this.#elector === undefined || this.#elector.isLeader
  }

  #reasons(): readonly string[] {
    return this.#controllers.map(({ reason }) => reason).filter((reason) => reason !== '')
  }

  #exportMetrics(): void {
    const { registry } = this.#env
    const leading = registry.gauge(
      'sextant_operator_leading',
      '1 if this operator is the leader, else 0.',
    )
    const watchUp = registry.gauge(
      'sextant_operator_watch_up',
      '1 while the watch of a collection runs, else 0.',
      ['collection'],
    )
    registry.onCollect(() => {
      leading.set(this.#isLeading && this.#mayWrite() ? 1 : 0)
      for (const { what, isFollowing } of this.#controllers.flatMap(({ watches }) => watches)) {
        watchUp.set({ collection: what }, isFollowing ? 1 : 0)
      }
    })
  }
}
