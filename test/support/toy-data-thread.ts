import { type MessagePort, workerData } from 'node:worker_threads'
import { systemClock } from '../../src/base/clock.ts'
import { DataThread } from '../../src/server/data/data-thread.ts'
import type { DataThreadInit } from '../../src/server/data/messages.ts'
import { TOY_NAMES, TOYS } from './toy-directives.ts'

const { init, port } = workerData as { init: DataThreadInit; port: MessagePort }
const parts = { directives: TOYS, directiveNames: TOY_NAMES, clock: systemClock, port, init }
new DataThread(parts).run()
