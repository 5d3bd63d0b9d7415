import { parentPort, workerData } from 'node:worker_threads'
import { assert } from '../../base/assert.ts'
import { runInBackground } from '../../base/background-thread.ts'
import { type SnapshotJob, writeSnapshot } from './write.ts'

/** Result of a write in another thread. */
export type SnapshotMessage =
  | { readonly kind: 'written'; readonly octets: number }
  | { readonly kind: 'failed'; readonly message: string }

// Entry of a worker thread: runs the one job in `workerData` and exits.
const port = parentPort
assert(port !== null, 'runs in a worker thread')
runInBackground()
const post = (message: SnapshotMessage): void => port.postMessage(message)

try {
  post({ kind: 'written', octets: writeSnapshot(workerData as SnapshotJob) })
} catch (error) {
  post({ kind: 'failed', message: error instanceof Error ? error.message : String(error) })
}
