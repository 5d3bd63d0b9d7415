import { Worker } from 'node:worker_threads'
import type { StartThread } from '../server/data/thread-handle.ts'

/**
 * A data thread makes next to no garbage: what there is lives in a space so small that collecting it
 * takes a fraction of a millisecond.
 */
const YOUNG_MEGABYTES_MAX = 4

/** Starts a worker that runs `data-thread.ts`. */
export const startDataThread: StartThread = (init, port) => {
  // The sources run as .ts under a loader, as .js once built.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  return new Worker(new URL(`./data-thread.${extension}`, import.meta.url), {
    workerData: { init, port },
    transferList: [port],
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MEGABYTES_MAX },
    name: 'sextant data',
  })
}
