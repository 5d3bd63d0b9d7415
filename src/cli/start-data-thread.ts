import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { logForm } from '../base/telemetry/log.ts'
import type { StartThread } from '../server/data/thread-handle.ts'

/**
 * A data thread makes almost no garbage. Its young generation is so small that a collection takes a
 * fraction of a millisecond.
 */
const YOUNG_MEGABYTES_MAX = 4

/** A server on more processors has time for the others once it knows how many threads its Corefile wants. */
const PREPARED_MAX = 2

/** Threads that load their modules already, and wait for `startDataThread`. */
let prepared: Worker[] = []

/**
 * Lets the first data threads load their modules while this one loads its own and reads the Corefile. That takes
 * about as long as all the rest of a start.
 */
export function prepareDataThreads(): void {
  const count = Math.min(PREPARED_MAX, availableParallelism())
  prepared = Array.from({ length: count }, launch)
  for (const worker of prepared) worker.unref()
}

/** Ends the prepared threads that the Corefile did not need. */
export function endUnusedThreads(): void {
  for (const worker of prepared) void worker.terminate()
  prepared = []
}

/** Starts a worker that runs `data-thread.ts`. */
export const startDataThread: StartThread = (init, port) => {
  const worker = prepared.shift() ?? launch()
  worker.postMessage({ init, port, isJson: logForm().name === 'json' }, [port])
  return worker
}

function launch(): Worker {
  // The sources run as .ts under a loader, and as .js once built.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  return new Worker(new URL(`./data-thread.${extension}`, import.meta.url), {
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MEGABYTES_MAX },
    name: 'sextant data',
  })
}
