import type { Clock } from '../base/clock.ts'

/** Returns milliseconds of a clock that all threads share, by those of this thread's monotonic clock. */
export function sharedClock(clock: Clock): (monotonicMs: number) => number {
  const offsetMs = Number(process.hrtime.bigint()) / 1e6 - clock.monotonic()
  return (monotonicMs) => monotonicMs + offsetMs
}
