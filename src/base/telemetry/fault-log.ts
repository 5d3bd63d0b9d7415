import type { Clock } from '../clock.ts'
import type { Logger } from './log.ts'

/** Most faults that are logged individually within that time. */
const TOLD_MAX = 100
const TOLD_PERIOD_MS = 10 * 60_000

/**
 * Logs the faults of many things, each once for as long as it lasts, and a limited number per
 * period. Faults above the limit are counted, and logged when they are found again.
 */
export class FaultLog {
  readonly #log: Logger
  readonly #clock: Pick<Clock, 'monotonic'>
  /** The faults that were logged, by the thing that they concern. */
  readonly #reported = new Map<string, string>()
  #periodMs = Number.NEGATIVE_INFINITY
  #count = 0

  constructor(log: Logger, clock: Pick<Clock, 'monotonic'>) {
    this.#log = log
    this.#clock = clock
  }

  /** Returns true if the fault was logged now. */
  report(thing: string, fault: string): boolean {
    if (this.#reported.get(thing) === fault) return false
    this.#beginPeriod()
    if (++this.#count > TOLD_MAX) {
      this.#reported.delete(thing)
      return false
    }
    this.#reported.set(thing, fault)
    this.#log.warning(fault, 'fault')
    return true
  }

  /** Forgets the fault of a thing that recovered or was removed: the same fault is logged again. */
  clear(thing: string): void {
    this.#reported.delete(thing)
  }

  #beginPeriod(): void {
    const nowMs = this.#clock.monotonic()
    if (nowMs - this.#periodMs < TOLD_PERIOD_MS) return
    const unreported = this.#count - TOLD_MAX
    if (unreported > 0) this.#log.warning(`and ${unreported} more faults before`, 'fault-more')
    this.#periodMs = nowMs
    this.#count = 0
  }
}
