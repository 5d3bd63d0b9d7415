import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'

/** Spreads work over time: after a burst, one piece in each interval, in the order of the calls. */
export class Pace {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #timers: Timers
  readonly #everyMs: number
  readonly #burst: number
  /** When the piece after the last one is due. */
  #dueMs = Number.NEGATIVE_INFINITY

  constructor(clock: Pick<Clock, 'monotonic'>, timers: Timers, perSecond: number, burst: number) {
    this.#clock = clock
    this.#timers = timers
    this.#everyMs = 1000 / perSecond
    this.#burst = burst
  }

  /** Resolves when the caller may do its piece. */
  async turn(): Promise<void> {
    const nowMs = this.#clock.monotonic()
    this.#dueMs = Math.max(this.#dueMs, nowMs - this.#burst * this.#everyMs) + this.#everyMs
    const delayMs = this.#dueMs - nowMs
    if (delayMs > 0) await new Promise<void>((resolve) => this.#timers.after(delayMs, resolve))
  }
}
