import type { Clock } from './clock.ts'

/** Longest time that sliced work holds the event loop: queries wait no longer than this. */
export const SLICE_MS = 4

/** Runs a piece of work that could pause, without pausing; returns what it returns. */
export function runWhole<T>(work: Generator<void, T>): T {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}

/**
 * Runs work that offers a pause at each `yield` in slices of about SLICE_MS; between slices the event
 * loop does what else there is. Rejects with what `work` throws.
 */
export async function runInSlices<T>(work: Generator<void, T>, clock: Clock): Promise<T> {
  let sliceEnd = clock.monotonic() + SLICE_MS
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
    if (clock.monotonic() < sliceEnd) continue
    await new Promise<void>((resume) => setImmediate(resume))
    sliceEnd = clock.monotonic() + SLICE_MS
  }
}
