import { performJob } from '../../src/geo/worker/job.ts'
import type { JobRunner } from '../../src/geo/worker/run-job.ts'

/** Runs jobs in the caller's thread. */
export const runJobInline: JobRunner = async (job) => performJob(job)
