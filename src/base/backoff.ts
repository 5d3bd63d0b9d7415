import type { Random } from './random.ts'

const FIRST_MS = 500
const LAST_MS = 15_000

/**
 * Waits between attempts. Each is twice the one before, up to a bound, and half of it is random, so
 * that servers which lost the same API do not all return at once.
 */
export class Backoff {
  readonly #random: Random
  #nextMs = FIRST_MS

  constructor(random: Random) {
    this.#random = random
  }

  /** The next wait in milliseconds, up to 15 s. */
  next(): number {
    const half = this.#nextMs / 2
    this.#nextMs = Math.min(this.#nextMs * 2, LAST_MS)
    return half + this.#random.below(half + 1)
  }

  /** Resets the wait after a success. */
  reset(): void {
    this.#nextMs = FIRST_MS
  }
}
