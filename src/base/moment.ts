import type { Clock } from './clock.ts'

/** A moment of the past: by the clock that ages are measured with, and by the one that people read. */
export interface Moment {
  /** Monotonic milliseconds; negative where it was before this process began. */
  readonly seenMs: number
  /** Milliseconds since the epoch, as the wall clock said then. */
  readonly seenTimeMs: number
}

/** Nothing that was written down is older: more than any wait of ours. */
export const AGE_MS_MAX = 10 * 365 * 24 * 3600 * 1000

/** Now. */
export function thisMoment(clock: Clock): Moment {
  return { seenMs: clock.monotonic(), seenTimeMs: clock.now() }
}

/**
 * The moment that a wall clock wrote down as `timeMs`, perhaps that of another process. Its age is measured once,
 * here: from then on wall clocks may be set as they like. A time that is yet to come is that of a clock that was
 * wrong, and counts as now.
 */
export function recallMoment(timeMs: number, clock: Clock): Moment {
  const ageMs = Math.min(Math.max(0, clock.now() - timeMs), AGE_MS_MAX)
  return { seenMs: clock.monotonic() - ageMs, seenTimeMs: Math.min(timeMs, clock.now()) }
}

/** What to write down for a moment, so that `recallMoment` finds it. Milliseconds since the epoch. */
export function writeMoment(seenMs: number, clock: Clock): number {
  return Math.round(clock.now() - (clock.monotonic() - seenMs))
}
