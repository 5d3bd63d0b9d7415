import { type MessagePort, workerData } from 'node:worker_threads'
import { systemClock } from '../../src/base/clock.ts'
import type { Directive } from '../../src/plugin/directive.ts'
import { DataThread } from '../../src/server/data/data-thread.ts'
import type { DataThreadInit } from '../../src/server/data/messages.ts'

/* A data thread with the directives that the module `directives` exports. */
const { init, port, directives } = workerData as {
  init: DataThreadInit
  port: MessagePort
  directives: string
}
const { DIRECTIVES } = (await import(directives)) as { DIRECTIVES: readonly Directive[] }
const directiveNames = DIRECTIVES.map(({ name }) => name)
const loadDirectives = async () => DIRECTIVES
await new DataThread({ loadDirectives, directiveNames, clock: systemClock, port, init }).run()
