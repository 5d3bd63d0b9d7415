/**
 * Bounds lines that packets cause: at most `linesMax` per period. If the budget is used up, the
 * caller counts the line.
 */
export class LineBudget {
  readonly #linesMax: number
  readonly #periodMs: number
  #startMs = Number.NEGATIVE_INFINITY
  #lines = 0

  constructor(linesMax: number, periodMs: number) {
    this.#linesMax = linesMax
    this.#periodMs = periodMs
  }

  /** Returns true, and uses one line of the budget, if the period has room for it. `nowMs`: monotonic. */
  take(nowMs: number): boolean {
    if (nowMs - this.#startMs >= this.#periodMs) {
      this.#startMs = nowMs
      this.#lines = 0
    }
    if (this.#lines >= this.#linesMax) return false
    this.#lines++
    return true
  }
}
