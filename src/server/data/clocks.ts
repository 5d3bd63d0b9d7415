import type { Clock } from '../../base/clock.ts'

/** A clock that stands still during a batch: reading the time costs as much as a third of a lookup. */
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

/** Queries that are done at the same time, as far as logs and metrics show: some microseconds at most. */
const READS_PER_TIME = 8

/**
 * When queries of a batch are done: the first and every eighth after it read the time, the others have
 * that of the last that did. A read costs as much as printing half a line.
 */
export class FinishClock implements Clock {
  readonly #clock: Clock
  #left = 0
  #monotonic = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** From a new batch on nobody has the time of the last. */
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
