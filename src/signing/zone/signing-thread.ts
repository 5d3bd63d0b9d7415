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
  /** See `unpackSignatures`; a text = why the batch cannot be signed. */
  readonly octets: Uint8Array | string
}

// Entry of a worker thread: signs batches until it is ended.
const port = parentPort
assert(port !== null, 'runs in a worker thread')
runInBackground()
port.on('message', ({ id, batch }: BatchJob) => {
  port.postMessage({ id, octets: octetsOf(batch) } satisfies BatchResult)
})

/** A fault must not end the thread: other zones wait for it. */
function octetsOf(batch: SignatureBatch): BatchResult['octets'] {
  try {
    return signBatch(batch)
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
