import { type MessagePort, workerData } from 'node:worker_threads'
import { systemClock } from '../base/clock.ts'
import { DIRECTIVE_NAMES, loadDirectives } from '../plugins/order.ts'
import { DataThread } from '../server/data/data-thread.ts'
import type { DataThreadInit } from '../server/data/messages.ts'

// Entry of a data thread: serves until the control thread ends it.
const { init, port } = workerData as { init: DataThreadInit; port: MessagePort }
await new DataThread({
  loadDirectives,
  directiveNames: DIRECTIVE_NAMES,
  clock: systemClock,
  port,
  init,
}).run()
