import { parentPort } from 'node:worker_threads'
import { assert } from '../../base/assert.ts'
import { runInBackground } from '../../base/background-thread.ts'
import { type SignatureBatch, signBatch } from './signature-batch.ts'

export interface BatchJob {
  readonly id: number
  readonly batch: SignatureBatch
}

export interface BatchResult {
  readonly id: number
  /** See `unpackSignatures`. */
  readonly octets: Uint8Array
}

// Entry of a worker thread: signs batches until it is ended.
const port = parentPort
assert(port !== null, 'runs in a worker thread')
runInBackground()
port.on('message', ({ id, batch }: BatchJob) => {
  port.postMessage({ id, octets: signBatch(batch) } satisfies BatchResult)
})
