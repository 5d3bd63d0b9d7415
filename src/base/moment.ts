import type { Clock } from './clock.ts'

/** A moment in the past: by the monotonic clock, for ages, and by the wall clock, for people. */
export interface Moment {
  /** Monotonic milliseconds; negative if before the start of this process. */
  readonly seenMs: number
  /** Milliseconds since the epoch, by the wall clock at that moment. */
  readonly seenTimeMs: number
}

/** Largest age of a stored moment: longer than any wait of the program. */
const AGE_MS_MAX = 10 * 365 * 24 * 3600 * 1000

/** The current moment. */
export function thisMoment(clock: Clock): Moment {
  return { seenMs: clock.monotonic(), seenTimeMs: clock.now() }
}

/**
 * The moment that a wall clock stored as `timeMs`, perhaps in another process. Its age is computed
 * once, here: later changes of the wall clock have no effect. A time in the future comes from a
 * wrong clock, and counts as now.
 */
export function recallMoment(timeMs: number, clock: Clock): Moment {
  const ageMs = Math.min(Math.max(0, clock.now() - timeMs), AGE_MS_MAX)
  return { seenMs: clock.monotonic() - ageMs, seenTimeMs: Math.min(timeMs, clock.now()) }
}

/** The time to store for a moment, so that `recallMoment` restores it. Milliseconds since the epoch. */
export function writeMoment(seenMs: number, clock: Clock): number {
  return Math.round(clock.now() - (clock.monotonic() - seenMs))
}
