import { Worker } from 'node:worker_threads'
import { InputError } from '../../base/errors.ts'
import { type GeoJob, type GeoJobMessage, type GeoResult, performJob } from './job.ts'

/** Runs a job, without blocking the caller's thread if possible. Rejects with InputError. */
export type JobRunner = (job: GeoJob) => Promise<GeoResult>

/**
 * Runs each job in a new thread. Jobs are rare and take a hundred times longer than starting a
 * thread. Runs the job in this thread if the new thread did not start. The process may exit in the
 * meantime.
 */
export const runJobInThread: JobRunner = (job) =>
  new Promise((resolve, reject) => {
    const worker = startWorker(job)
    if (worker === undefined) {
      resolve(runJobInline(job))
      return
    }
    let ready = false
    worker.unref()
    worker.on('message', (message: GeoJobMessage) => {
      if (message.kind === 'ready') ready = true
      else if (message.kind === 'done') resolve(message.result)
      else reject(new InputError(undefined, message.message))
    })
    worker.on('error', (error) => {
      if (ready) reject(error)
      else resolve(runJobInline(job))
    })
    worker.on('exit', () => reject(new Error('the thread ended without a result')))
  })

/** Runs jobs in the thread of the caller, for a process that has nothing else to do meanwhile. */
export const runJobInline: JobRunner = async (job) => performJob(job)

function startWorker(job: GeoJob): Worker | undefined {
  // The sources run as .ts under a loader, and as .js after the build.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  try {
    return new Worker(new URL(`./thread.${extension}`, import.meta.url), { workerData: job })
  } catch {
    // Threads can be forbidden (ERR_WORKER_INIT_FAILED, a permission model). The job then runs
    // inline.
    return undefined
  }
}
