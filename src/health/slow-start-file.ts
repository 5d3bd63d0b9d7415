import type { Clock } from '../base/clock.ts'
import type { Timers } from '../base/timers.ts'
import { StateFile } from '../persist/state-file.ts'
import type { Logger } from '../telemetry/log.ts'
import { type HostSlowStart, SETTLE_MS } from './slow-start.ts'
import {
  elapsedSince,
  printSlowStarts,
  SLOW_START_STATE,
  type SlowStartAddress,
} from './slow-start-text.ts'

export interface SlowStartFileOptions {
  /** Absolute path. */
  readonly path: string
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
}

/** Stores slow starts over a restart, for all sources with the same file. */
export class SlowStartFile {
  readonly #clock: Clock
  readonly #file: StateFile<{ writtenMs: number; addresses: readonly SlowStartAddress[] }>
  readonly #users = new Set<() => Iterable<HostSlowStart>>()
  readonly #openedMs: number
  readonly #known: readonly HostSlowStart[]

  constructor({ path, log, clock, timers }: SlowStartFileOptions) {
    this.#clock = clock
    const print = (): Iterable<string> => printSlowStarts(this.#state())
    this.#file = new StateFile({ path, kind: SLOW_START_STATE, log, clock, timers, print })
    const found = this.#file.open()
    this.#openedMs = clock.monotonic()
    this.#known = (found?.addresses ?? []).map((one) => {
      const elapsedMs = elapsedSince(one, found!.writtenMs, clock.now())
      const sinceMs = new Map([[one.address, clock.monotonic() - elapsedMs]])
      return { key: one.key, hostKey: one.hostKey, sinceMs }
    })
  }

  /**
   * Slow starts of an earlier process. Empty after the start, because a reload has those of this
   * process.
   */
  get known(): readonly HostSlowStart[] {
    return this.#clock.monotonic() - this.#openedMs < SETTLE_MS ? this.#known : []
  }

  /** Adds a source of slow starts to write to the file; returns the function that removes it. */
  add(slowStarted: () => Iterable<HostSlowStart>): () => void {
    this.#users.add(slowStarted)
    return () => this.#users.delete(slowStarted)
  }

  noteChange(): void {
    this.#file.noteChange()
  }

  /** Writes the current state and closes the file. */
  close(): void {
    if (this.#state().addresses.length > 0) this.#file.noteChange()
    this.#file.close()
  }

  #state(): { readonly writtenMs: number; readonly addresses: readonly SlowStartAddress[] } {
    const nowMs = this.#clock.monotonic()
    const addresses: SlowStartAddress[] = []
    for (const slowStarted of this.#users) {
      for (const { key, hostKey, sinceMs } of slowStarted()) {
        for (const [address, cameMs] of sinceMs) {
          addresses.push({ key, hostKey, address, elapsedMs: Math.max(0, nowMs - cameMs) })
        }
      }
    }
    return { writtenMs: this.#clock.now(), addresses }
  }
}
