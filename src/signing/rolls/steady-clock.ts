import type { Clock } from '../../base/clock.ts'

/** The wall clock jumped if it differs from the monotonic clock by more than this: drift is less. */
const JUMP_MS = 60_000
/** Longer than any wait of a roll: a wait that began before a jump is over by then. */
const HOLD_MS = 7 * 24 * 3600 * 1000

/**
 * The wall clock without sudden steps forward. Rolls wait until caches have lost old records, and a clock that is put
 * forward makes no cache faster. After a week, the new time is followed.
 */
export class SteadyClock {
  readonly #clock: Clock
  #wallMs: number
  #monotonicMs: number
  #heldMs = 0
  #heldUntilMs = 0

  constructor(clock: Clock) {
    this.#clock = clock
    this.#wallMs = clock.now()
    this.#monotonicMs = clock.monotonic()
  }

  /** Milliseconds by which the wall clock is ahead. */
  get heldMs(): number {
    return this.#heldMs
  }

  /** Seconds since the epoch, rounded down. */
  nowSeconds(): number {
    const wallMs = this.#clock.now()
    const monotonicMs = this.#clock.monotonic()
    const jumpMs = wallMs - this.#wallMs - (monotonicMs - this.#monotonicMs)
    this.#wallMs = wallMs
    this.#monotonicMs = monotonicMs
    if (jumpMs > JUMP_MS) {
      this.#heldMs += jumpMs
      this.#heldUntilMs = monotonicMs + HOLD_MS
    } else if (jumpMs < -JUMP_MS) this.#heldMs = Math.max(0, this.#heldMs + jumpMs)
    if (monotonicMs >= this.#heldUntilMs) this.#heldMs = 0
    return Math.floor((wallMs - this.#heldMs) / 1000)
  }
}
