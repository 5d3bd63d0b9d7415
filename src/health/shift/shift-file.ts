import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'
import { StateFile } from '../../persist/state-file.ts'
import type { Logger } from '../../telemetry/log.ts'
import { SETTLE_MS } from '../slow-start.ts'
import type { KnownShift } from './shift.ts'
import { printShifts, SHIFT_STATE, type StoredShift } from './shift-text.ts'

export interface ShiftFileOptions {
  /** Absolute path. */
  readonly path: string
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
}

/** Stores shifts over a restart, for all sources with the same file. */
export class ShiftFile {
  readonly #clock: Clock
  readonly #file: StateFile<readonly StoredShift[]>
  readonly #users = new Set<() => Iterable<KnownShift>>()
  readonly #openedMs: number
  readonly #known: readonly KnownShift[]

  constructor({ path, log, clock, timers }: ShiftFileOptions) {
    this.#clock = clock
    const print = (): Iterable<string> => printShifts(this.#shifts())
    this.#file = new StateFile({ path, kind: SHIFT_STATE, log, clock, timers, print })
    const found = this.#file.open() ?? []
    this.#openedMs = clock.monotonic()
    this.#known = found.map(({ hostKey, plan, progress, elapsedMs }) => {
      return { hostKey, plan, progress, sinceMs: this.#openedMs - elapsedMs }
    })
  }

  /** Shifts of an earlier process. Empty after the start, because a reload has those of this process. */
  get known(): readonly KnownShift[] {
    return this.#clock.monotonic() - this.#openedMs < SETTLE_MS ? this.#known : []
  }

  /** Adds a source of shifts to write to the file; returns the function that removes it. */
  add(shifts: () => Iterable<KnownShift>): () => void {
    this.#users.add(shifts)
    return () => this.#users.delete(shifts)
  }

  noteChange(): void {
    this.#file.noteChange()
  }

  /** Writes the current state and closes the file. */
  close(): void {
    if (this.#shifts().length > 0) this.#file.noteChange()
    this.#file.close()
  }

  #shifts(): readonly StoredShift[] {
    const nowMs = this.#clock.monotonic()
    return [...this.#users]
      .flatMap((shifts) => [...shifts()])
      .map(({ hostKey, plan, progress, sinceMs }) => {
        return { hostKey, plan, progress, elapsedMs: Math.max(0, nowMs - sinceMs) }
      })
  }
}
