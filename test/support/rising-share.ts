import { SLOW_START_STEPS } from '../../src/health/slow-start.ts'

/** Standard deviations that a count exceeds by chance less than once in 10^10 runs. */
const DEVIATIONS = 6.5
/** Beside half a step: that a timer is early, and that weights are whole numbers. */
const SLACK = 0.01

/**
 * Counts how often an address is drawn beside one of the same weight while it gets its own back. Whoever gives it back can't
 * have begun before the address was up, so that each answer has a greatest share whatever the machine is at: an answer that
 * comes late is only allowed more.
 */
export class RisingShare {
  readonly #durationMs: number
  #asked = 0
  #drawn = 0
  #expected = 0
  #variance = 0

  /** `durationMs`: until it has its full weight. */
  constructor(durationMs: number) {
    this.#durationMs = durationMs
  }

  /** An answer that came so long after the address was up. */
  note(isDrawn: boolean, elapsedMs: number): void {
    const weight = Math.min(1, elapsedMs / this.#durationMs + 0.5 / SLOW_START_STEPS + SLACK)
    const share = weight / (1 + weight)
    this.#asked++
    if (isDrawn) this.#drawn++
    this.#expected += share
    this.#variance += share * (1 - share)
  }

  get isWithinBound(): boolean {
    return this.#drawn <= this.#expected + DEVIATIONS * Math.sqrt(this.#variance)
  }

  /** False = too few answers came for full weights from the start to have been found out. */
  get isTelling(): boolean {
    const gap = this.#asked / 2 - this.#expected
    return gap > 2 * DEVIATIONS * Math.sqrt(this.#asked / 4)
  }

  toString(): string {
    const [most, share] = [Math.round(this.#expected), this.#drawn / this.#asked]
    return `${this.#drawn} of ${this.#asked} (${share.toFixed(2)}), expected at most ${most}`
  }
}
