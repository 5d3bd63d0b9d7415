import { performance } from 'node:perf_hooks'

/** Where code that needs the time gets it from, so that tests can turn the hands. */
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
