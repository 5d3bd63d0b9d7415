import { workerData } from 'node:worker_threads'
import { systemClock } from '../../dist/base/clock.js'
import { DataThread } from '../../dist/server/data/data-thread.js'
import { DIRECTIVES } from './direct-directive.mjs'

const directiveNames = DIRECTIVES.map(({ name }) => name)
const loadDirectives = async () => DIRECTIVES
const parts = { loadDirectives, directiveNames, clock: systemClock, ...workerData }
await new DataThread(parts).run()
