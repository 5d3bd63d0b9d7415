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
port.postMessage(toMessage(runWhole(loadImage(workerData as ImageJob))))
