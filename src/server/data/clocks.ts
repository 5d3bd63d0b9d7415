import type { Clock } from '../../base/clock.ts'

/**
 * A clock that stands still during a batch: reading the time takes up to a third of the time of a
 * lookup.
 */
export class BatchClock implements Clock {
  readonly #clock: Clock
  #now = 0
  #monotonic = 0

  constructor(clock: Clock) {
    this.#clock = clock
    this.turn()
  }

  turn(): void {
    this.#now = this.#clock.now()
    this.#monotonic = this.#clock.monotonic()
  }

  now(): number {
    return this.#now
  }

  monotonic(): number {
    return this.#monotonic
  }
}

/** Queries that finish at the same time for logs and metrics. The error is at most some microseconds. */
const READS_PER_TIME = 8

/**
 * The time at which queries of a batch finish. The first query and every eighth after it read the
 * time; the others use the last time read. A read takes as long as printing half a log line.
 */
export class FinishClock implements Clock {
  readonly #clock: Clock
  #left = 0
  #monotonic = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Starts a new batch: its first query reads the time again. */
  turn(): void {
    this.#left = 0
  }

  now(): number {
    return this.#clock.now()
  }

  /** @hot */
  monotonic(): number {
    if (this.#left === 0) {
      this.#left = READS_PER_TIME
      this.#monotonic = this.#clock.monotonic()
    }
    this.#left--
    return this.#monotonic
  }
}
