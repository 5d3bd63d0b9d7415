import { parentPort, workerData } from 'node:worker_threads'
import { assert } from '../../base/assert.ts'
import { runInBackground } from '../../base/background-thread.ts'
import { InputError } from '../../base/errors.ts'
import { type GeoJob, type GeoJobMessage, performJob } from './job.ts'

// Entry of a worker thread: runs the one job in `workerData` and exits.
const port = parentPort
assert(port !== null, 'runs in a worker thread')
runInBackground()
const post = (message: GeoJobMessage): void => port.postMessage(message)

post({ kind: 'ready' })
try {
  post({ kind: 'done', result: performJob(workerData as GeoJob) })
} catch (error) {
  // Errors lose their class when they are sent between threads.
  if (!(error instanceof InputError)) throw error
  post({ kind: 'failed', message: error.message })
}
