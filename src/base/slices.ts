import type { Clock } from './clock.ts'

/** Longest time that sliced work holds the event loop: queries wait no longer than this. */
export const SLICE_MS = 4

/** Runs work that could pause, without pausing. Returns its result. */
export function runWhole<T>(work: Generator<void, T>): T {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}

/**
 * Runs work, which offers a pause at each `yield`, in slices of about SLICE_MS. Between slices, the
 * event loop does other work. Rejects with what `work` throws.
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
