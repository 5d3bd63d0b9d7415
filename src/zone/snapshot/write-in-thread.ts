import { Worker } from 'node:worker_threads'
import type { SnapshotMessage } from './thread.ts'
import type { SnapshotJob } from './write.ts'

/** Writes a snapshot; resolves to its octets. Rejects with what kept it from that. */
export type SnapshotWriter = (job: SnapshotJob) => Promise<number>

/**
 * Writes it in a thread of its own, which costs the caller's nothing but the starting of it. Nothing is
 * written where there are no threads: this one has queries to answer. The process may end meanwhile.
 */
export const writeInThread: SnapshotWriter = (job) =>
  new Promise((resolve, reject) => {
    // The sources run as .ts under a loader, as .js once built.
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
