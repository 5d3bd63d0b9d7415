import { setFlagsFromString } from 'node:v8'

/** @internal Exported for its test: V8 drops flags from one version to the next. */
const YOUNG_HEAP_FLAG = '--no-allocation-site-pretenuring'

/**
 * Keeps V8 from putting short-lived objects of a start into the old generation. While a zone is
 * filled, the objects of a few places in the code live long. V8 then begins to allocate all objects
 * of these places in the old generation. When those die, only a full collection frees them, and the
 * pages remain. Call it before much data is read (docs/performance.md has the figures).
 */
export function keepHeapYoung(): void {
  setFlagsFromString(YOUNG_HEAP_FLAG)
}
