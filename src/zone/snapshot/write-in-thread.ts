import { Worker } from 'node:worker_threads'
import type { SnapshotMessage } from './thread.ts'
import type { SnapshotJob } from './write.ts'

/** Writes a snapshot; resolves to its octets. Rejects with the reason if the write fails. */
export type SnapshotWriter = (job: SnapshotJob) => Promise<number>

/**
 * Writes the snapshot in a new thread; the caller's thread only starts that thread. Writes nothing
 * if threads are unavailable, because this thread must answer queries. The process may exit in the
 * meantime.
 */
export const writeInThread: SnapshotWriter = (job) =>
  new Promise((resolve, reject) => {
    // The sources run as .ts under a loader, and as .js after the build.
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
    const url = new URL(`./thread.${extension}`, import.meta.url)
    const worker = new Worker(url, { workerData: job })
    worker.unref()
    worker.on('message', (message: SnapshotMessage) => {
      if (message.kind === 'written') resolve(message.octets)
      else reject(new Error(message.message))
    })
    worker.on('error', reject)
    worker.on('exit', () => reject(new Error('the thread ended without a result')))
  })
