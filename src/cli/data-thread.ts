import { once } from 'node:events'
import { type MessagePort, parentPort } from 'node:worker_threads'
import { systemClock } from '../base/clock.ts'
import { setLogForm } from '../base/telemetry/log.ts'
import { DIRECTIVE_NAMES, loadDirectives } from '../plugins/order.ts'
import { DataThread } from '../server/data/data-thread.ts'
import type { DataThreadInit } from '../server/data/messages.ts'

/** What `startDataThread` posts, once. */
interface Start {
  readonly init: DataThreadInit
  readonly port: MessagePort
  /** Log lines are JSON. */
  readonly isJson: boolean
}

const [{ init, port, isJson }] = (await once(parentPort!, 'message')) as [Start]
if (isJson) {
  const { JSON_LINES } = await import('../base/telemetry/json-lines.ts')
  setLogForm(JSON_LINES)
}
// Entry of a data thread: serves until the control thread ends it.
await new DataThread({
  loadDirectives,
  directiveNames: DIRECTIVE_NAMES,
  clock: systemClock,
  port,
  init,
}).run()
