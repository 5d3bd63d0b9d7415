import { parentPort, workerData } from 'node:worker_threads'
import { assert } from '../../base/assert.ts'
import { runInBackground } from '../../base/background-thread.ts'
import { runWhole } from '../../base/slices.ts'
import { loadImage } from './image-load.ts'
import { type ImageJob, toMessage } from './load-in-thread.ts'

// Entry of a worker thread: runs the one job in `workerData` and exits.
const port = parentPort
assert(port !== null, 'runs in a worker thread')
runInBackground()
const { path, apex, options } = workerData as ImageJob
port.postMessage(toMessage(runWhole(loadImage(path, apex, options))))
