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

/** The slices of sliced work: between two of them, the event loop does other work. */
export class Slices {
  readonly #clock: Clock
  #endMs: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#endMs = clock.monotonic() + SLICE_MS
  }

  get isOver(): boolean {
    return this.#clock.monotonic() >= this.#endMs
  }

  /** Begins another slice after other work. */
  async pause(): Promise<void> {
    await new Promise<void>((resume) => setImmediate(resume))
    this.#endMs = this.#clock.monotonic() + SLICE_MS
  }
}

/**
 * Runs work, which offers a pause at each `yield`, in slices of about SLICE_MS. Rejects with what `work` throws.
 */
export async function runInSlices<T>(work: Generator<void, T>, clock: Clock): Promise<T> {
  const slices = new Slices(clock)
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
    if (slices.isOver) await slices.pause()
  }
}
