import { performance } from 'node:perf_hooks'

/** The source of time, which tests replace. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number
  /** Milliseconds, monotonic, from an arbitrary start, with sub-millisecond digits. */
  monotonic(): number
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
}
