import { setPriority } from 'node:os'

/** The nice value of threads whose work may wait while queries do not. */
const BACKGROUND_NICE = 10

/** Lets other threads go first, where a processor is short. Call it in a thread of its own. */
export function runInBackground(): void {
  // Elsewhere it is the priority of the whole process.
  if (process.platform === 'linux') setPriority(BACKGROUND_NICE)
}
