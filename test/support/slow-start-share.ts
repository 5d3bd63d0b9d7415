/** Equal steps from the smallest to the full weight. */
export const SLOW_START_STEPS = 10
/** Standard deviations that a count exceeds by chance less than once in 10^10 runs. */
const DEVIATIONS = 6.5
/** Allowance for early timers and for weights that are rounded to integers. */
const SLACK = 0.01

/**
 * Counts how often an address in slow start is drawn beside another one of the same weight. Slow start can't begin before the
 * address is up, so each answer has a largest share. The bound holds on a slow machine too: a late answer may have more.
 */
export class SlowStartShare {
  readonly #durationMs: number
  #asked = 0
  #drawn = 0
  #expected = 0
  #variance = 0

  /** `durationMs`: duration of the slow start. */
  constructor(durationMs: number) {
    this.#durationMs = durationMs
  }

  /** Counts an answer that arrived `elapsedMs` after the address was up. */
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

  /** False if the answers are too few to detect a server without slow start. */
  get isConclusive(): boolean {
    const gap = this.#asked / 2 - this.#expected
    return gap > 2 * DEVIATIONS * Math.sqrt(this.#asked / 4)
  }

  toString(): string {
    const [most, share] = [Math.round(this.#expected), this.#drawn / this.#asked]
    return `${this.#drawn} of ${this.#asked} (${share.toFixed(2)}), expected at most ${most}`
  }
}
