import { type MessagePort, workerData } from 'node:worker_threads'
import { systemClock } from '../../../src/base/clock.ts'
import { DataThread } from '../../../src/server/data/data-thread.ts'
import type { DataThreadInit } from '../../../src/server/data/messages.ts'
import { WITH_LATER } from './later.ts'

// As src/cli/data-thread.ts.
const { init, port } = workerData as { init: DataThreadInit; port: MessagePort }
await new DataThread({ ...WITH_LATER, clock: systemClock, port, init }).run()
