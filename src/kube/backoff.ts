import type { Random } from '../base/random.ts'

const FIRST_MS = 500
const LAST_MS = 15_000

/** Waits between attempts: each twice the one before, up to a bound, half of it drawn, so that servers that lost the same API don't come back as one. */
export class Backoff {
  readonly #random: Random
  #nextMs = FIRST_MS

  constructor(random: Random) {
    this.#random = random
  }

  /** The next wait, in milliseconds: up to 15 s. */
  next(): number {
    const half = this.#nextMs / 2
    this.#nextMs = Math.min(this.#nextMs * 2, LAST_MS)
    return half + this.#random.below(half + 1)
  }

  /** Things went well. */
  reset(): void {
    this.#nextMs = FIRST_MS
  }
}
