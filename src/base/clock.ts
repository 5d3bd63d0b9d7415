import os from 'node:os'
import { performance } from 'node:perf_hooks'

/** The source of time, which tests replace. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number
  /** Milliseconds, monotonic, from an arbitrary start, with sub-millisecond digits. */
  monotonic(): number
  /**
   * Milliseconds since the machine started, with those in which it slept: `monotonic` stands still then. Missing = it
   * never sleeps.
   */
  uptime?(): number
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  uptime: () => os.uptime() * 1000,
}
