import type { Clock } from '../base/clock.ts'

/** Limits a rate: allows a burst, and then one more per interval. */
export class TokenBucket {
  readonly #clock: Clock
  readonly #most: number
  readonly #everyMs: number
  #tokens: number
  #filledMs: number

  /** `most`: burst size; `everyMs`: interval in milliseconds after which one more is allowed. */
  constructor(clock: Clock, most: number, everyMs: number) {
    this.#clock = clock
    this.#most = most
    this.#everyMs = everyMs
    this.#tokens = most
    this.#filledMs = clock.monotonic()
  }

  /** Takes a token; false if the bucket is empty. */
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
