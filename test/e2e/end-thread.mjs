// Loaded into a server (`--import`): SIGWINCH terminates the data thread that began to serve last.
import { syncBuiltinESMExports } from 'node:module'
import threads from 'node:worker_threads'

const { Worker } = threads
let last

threads.Worker = class extends Worker {
  postMessage(...args) {
    // A server starts more data threads than it may need; this one gets something to do.
    last = this
    super.postMessage(...args)
  }
}
syncBuiltinESMExports()
if (threads.isMainThread) process.on('SIGWINCH', () => last?.terminate())
