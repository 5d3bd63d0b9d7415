// Loaded into a server (`--import`): SIGWINCH terminates the data thread that was started last.
import { syncBuiltinESMExports } from 'node:module'
import threads from 'node:worker_threads'

const { Worker } = threads
let last

threads.Worker = class extends Worker {
  constructor(...args) {
    super(...args)
    if (args[1]?.name === 'sextant data') last = this
  }
}
syncBuiltinESMExports()
if (threads.isMainThread) process.on('SIGWINCH', () => last?.terminate())
