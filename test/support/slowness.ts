import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)
/** What it takes a process of Node to start and end, at most, on a machine on which times tell something of us. */
const START_MS = 100

/** By how much times are longer just now than on a machine with time to spare, at least 1. */
export async function measureSlowness(): Promise<number> {
  const startMs = performance.now()
  await run(process.execPath, ['-e', '0'])
  return Math.max(1, (performance.now() - startMs) / START_MS)
}
