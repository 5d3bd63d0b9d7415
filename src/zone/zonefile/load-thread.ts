import { parentPort, workerData } from 'node:worker_threads'
import { assert } from '../../base/assert.ts'
import { runInBackground } from '../../base/background-thread.ts'
import { runWhole } from '../../base/slices.ts'
import { type ImageJob, loadImage } from './image-load.ts'
import { toMessage } from './load-in-thread.ts'

// Entry of a worker thread: runs the one job in `workerData` and exits.
const port = parentPort
assert(port !== null, 'runs in a worker thread')
runInBackground()
const job = workerData as ImageJob
const message = toMessage(runWhole(loadImage(job)))
port.postMessage(message)
if ('path' in job && job.snapshot !== undefined && message.kind === 'loaded') {
  const { path, apex, options, snapshot } = job
  const { writeFileSnapshot } = await import('./file-snapshot.ts')
  let fault = ''
  try {
    writeFileSnapshot(snapshot, { path, apex, isWhole: options.isWhole ?? true }, message)
  } catch (error) {
    fault = error instanceof Error ? error.message : String(error)
  }
  port.postMessage({ kind: 'snapshot', fault })
}
