import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'
import { ApiError } from '../../kube/api.ts'

const TOO_MANY_REQUESTS = 429
/** Tries of one write that the API server postpones. */
const TRIES = 10
/** Bounds of the wait that the API server asks for. */
const WAIT_MS_MIN = 1000
const WAIT_MS_MAX = 10_000

/**
 * Writes as fast as the API server permits. If it answers a write with 429 (RFC 6585 section 4), all writes wait as
 * long as it asks for.
 */
export class PausedWrites {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #timers: Timers
  #resumeMs = Number.NEGATIVE_INFINITY

  constructor(clock: Pick<Clock, 'monotonic'>, timers: Timers) {
    this.#clock = clock
    this.#timers = timers
  }

  /** Calls `write`, also again after a 429. */
  async run(write: () => Promise<void>): Promise<void> {
    for (let tries = 1; ; tries++) {
      await this.#resume()
      try {
        return await write()
      } catch (error) {
        const isPostponed = error instanceof ApiError && error.status === TOO_MANY_REQUESTS
        if (!isPostponed || tries === TRIES) throw error
        const askedMs = error.retryAfterSeconds * 1000
        const waitMs = Math.min(Math.max(askedMs, WAIT_MS_MIN), WAIT_MS_MAX)
        this.#resumeMs = Math.max(this.#resumeMs, this.#clock.monotonic() + waitMs)
      }
    }
  }

  async #resume(): Promise<void> {
    for (;;) {
      const leftMs = this.#resumeMs - this.#clock.monotonic()
      if (leftMs <= 0) return
      await new Promise<void>((resolve) => this.#timers.after(leftMs, resolve))
    }
  }
}
