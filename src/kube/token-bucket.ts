import type { Clock } from '../base/clock.ts'

/** Lets through so many at once, and so many more as time goes by. */
export class TokenBucket {
  readonly #clock: Clock
  readonly #most: number
  readonly #everyMs: number
  #tokens: number
  #filledMs: number

  /** `most`: at once; `everyMs`: the time after which there is one more. */
  constructor(clock: Clock, most: number, everyMs: number) {
    this.#clock = clock
    this.#most = most
    this.#everyMs = everyMs
    this.#tokens = most
    this.#filledMs = clock.monotonic()
  }

  /** True if there was one. */
  take(): boolean {
    this.#fill()
    if (this.#tokens < 1) return false
    this.#tokens--
    return true
  }

  #fill(): void {
    const nowMs = this.#clock.monotonic()
    const earned = (nowMs - this.#filledMs) / this.#everyMs
    this.#tokens = Math.min(this.#most, this.#tokens + earned)
    this.#filledMs = nowMs
  }
}
