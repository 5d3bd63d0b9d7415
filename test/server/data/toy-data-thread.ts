import { setTimeout as delay } from 'node:timers/promises'
import { type MessagePort, workerData } from 'node:worker_threads'
import { systemClock } from '../../../src/base/clock.ts'
import { namedDirectives } from '../../../src/corefile/parser.ts'
import type { LoadDirectives } from '../../../src/plugin/directive.ts'
import { DataThread } from '../../../src/server/data/data-thread.ts'
import type { DataThreadInit } from '../../../src/server/data/messages.ts'
import { Gate, TOY_NAMES, TOYS } from './toy-directives.ts'

const { init, port, gate } = workerData as {
  init: DataThreadInit
  port: MessagePort
  gate: Int32Array
}

/** `late` takes until the gate is opened, and `absent` cannot be loaded in such threads. */
const loadDirectives: LoadDirectives = async (blocks) => {
  const names = namedDirectives(blocks)
  if (names.has('absent')) throw new Error('there is no such module')
  if (names.has('late')) {
    Atomics.store(gate, 0, Gate.Wanted)
    while (Atomics.load(gate, 0) !== Gate.Open) await delay(1)
  }
  return TOYS.filter(({ name }) => names.has(name))
}
const parts = { loadDirectives, directiveNames: TOY_NAMES, clock: systemClock, port, init }
await new DataThread(parts).run()
