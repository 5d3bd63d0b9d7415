import { setFlagsFromString } from 'node:v8'

/** @internal Exported for its test: V8 drops flags from one version to the next. */
export const YOUNG_HEAP_FLAG = '--no-allocation-site-pretenuring'

/**
 * Keeps V8 from putting what a start makes among what lives long. While a zone is filled, what few places in the
 * code make lives long enough that V8 begins to put all that they make there at once: as it then dies, it takes a
 * full collection to be found, and the pages stay. To be called before much is read (docs/performance.md has
 * the figures).
 */
export function keepHeapYoung(): void {
  setFlagsFromString(YOUNG_HEAP_FLAG)
}
