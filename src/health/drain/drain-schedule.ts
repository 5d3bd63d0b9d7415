import type { Clock } from '../../base/clock.ts'
import { guarding } from '../../base/telemetry/guard.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { ProblemText } from '../../base/telemetry/problems.ts'
import type { Timers } from '../../base/timers.ts'
import { type EndpointDrain, isActive, isSameDrain, printDrain } from './drain.ts'

/** Interval of the checks for drains that end. */
export const DRAIN_CHECK_MS = 200

/** The operator exports only drains by annotations of records. */
export const CLUSTER_ONLY = 'not exported to other sites'

/** The drains that began and ended. */
export interface DrainsChange {
  readonly begun: readonly EndpointDrain[]
  readonly ended: readonly EndpointDrain[]
}

/** Drains that do not come from the records themselves. */
export interface DrainFeed {
  /** Those that are in force. Equal drains are the same object. */
  readonly drains: readonly EndpointDrain[]
  /** What is wrong with their source. */
  readonly problems: readonly ProblemText[]
  /** Calls `listener` after drains began or ended; returns the function that unsubscribes it. */
  subscribe(listener: (change: DrainsChange) => void): () => void
}

export interface DrainScheduleParts {
  readonly clock: Clock
  readonly log: Logger
  /** What the log says of each drain that begins; missing = nothing more. */
  readonly note?: string | undefined
}

/**
 * Drains of one source. A drain is in force until it ends. Each check compares its end with the wall clock,
 * so that a change of the clock loses nothing.
 */
export abstract class ScheduledDrains implements DrainFeed {
  abstract readonly problems: readonly ProblemText[]
  readonly #parts: DrainScheduleParts
  readonly #listeners = new Set<(change: DrainsChange) => void>()
  /** With drains that have ended. */
  #all: readonly EndpointDrain[] = []
  #active: readonly EndpointDrain[] = []
  #stop = (): void => {}

  constructor(parts: DrainScheduleParts) {
    this.#parts = parts
  }

  /** The drains that have not ended, in the order of the source. */
  get drains(): readonly EndpointDrain[] {
    return this.#active
  }

  /** Replaces the drains; the next check applies it. */
  protected set(drains: readonly EndpointDrain[]): void {
    this.#all = drains.map((drain) => this.#all.find((known) => isSameDrain(known, drain)) ?? drain)
  }

  /** Ends drains whose time has come, and begins new ones. */
  protected check(): void {
    const { clock, log, note } = this.#parts
    const more = note === undefined ? '' : `; ${note}`
    const nowMs = clock.now()
    const active = this.#all.filter((drain) => isActive(drain, nowMs))
    const begun = active.filter((drain) => !this.#active.includes(drain))
    const ended = this.#active.filter((drain) => !active.includes(drain))
    this.#active = active
    if (begun.length === 0 && ended.length === 0) return
    for (const drain of begun) log.info(`drain begins: ${printDrain(drain)}${more}`, 'drain-begins')
    for (const drain of ended) {
      const replaced = begun.some(({ selector }) => selector.text === drain.selector.text)
      if (!replaced) log.info(`drain ends: ${printDrain(drain)}`, 'drain-ends')
    }
    for (const listener of this.#listeners) listener({ begun, ended })
  }

  /** Checks from now on. `what`: for the log, if a check fails. */
  protected checkAlways(timers: Timers, what: string): void {
    const guarded = guarding(this.#parts.log, what)
    this.#stop = timers.every(DRAIN_CHECK_MS, () => void guarded(() => this.check()))
  }

  subscribe(listener: (change: DrainsChange) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  close(): void {
    this.#stop()
    this.#listeners.clear()
  }
}
