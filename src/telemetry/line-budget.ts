/**
 * Bounds lines that packets cause: at most `linesMax` in a period. A caller that is refused counts the line instead.
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

  /** True = there is room for one more line, which is thereby taken. `nowMs`: monotonic. */
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
