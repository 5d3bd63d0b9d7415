import { Worker } from 'node:worker_threads'
import type { StartThread } from '../server/data/thread-handle.ts'

/**
 * A data thread makes almost no garbage. Its young generation is so small that a collection takes a
 * fraction of a millisecond.
 */
const YOUNG_MEGABYTES_MAX = 4

/** Starts a worker that runs `data-thread.ts`. */
export const startDataThread: StartThread = (init, port) => {
  // The sources run as .ts under a loader, and as .js once built.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  return new Worker(new URL(`./data-thread.${extension}`, import.meta.url), {
    workerData: { init, port },
    transferList: [port],
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MEGABYTES_MAX },
    name: 'sextant data',
  })
}
