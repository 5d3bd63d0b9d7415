import type { Timers } from '../../base/timers.ts'
import type { Objects } from '../../kube/objects.ts'
import type { WorkQueue } from '../../kube/work-queue.ts'

/** Time that running requests get when a session ends. */
const END_MS = 3000

/** Starts nothing more; resolves once all running work has ended, or is aborted. */
export async function endWork(queue: WorkQueue, client: Objects, timers: Timers): Promise<void> {
  const cancel = timers.after(END_MS, () => client.close())
  await queue.close()
  cancel()
  client.close()
}
