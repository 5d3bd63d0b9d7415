import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { ownTaskFile, processorMs } from '../../../src/server/data/task-time.ts'
import { until } from '../../support/until.ts'

/** Says which file is its own, and sleeps or loops. */
const THREAD = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { readlinkSync } = require('node:fs')
  parentPort.postMessage('/proc/' + readlinkSync('/proc/thread-self') + '/stat')
  if (workerData.loops) for (;;);
  else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
`

t.test('the processor time of each thread is its own', async (t) => {
  const files: string[] = [ownTaskFile()]
  for (const loops of [true, false]) {
    const thread = new Worker(THREAD, { eval: true, workerData: { loops } })
    t.teardown(() => thread.terminate())
    const [file] = (await once(thread, 'message')) as [string]
    files.push(file)
  }
  t.equal(new Set(files).size, 3, files.join())
  const [own, loop, sleep] = files as [string, string, string]
  t.ok(processorMs(own) > 0)
  const asleepMs = processorMs(sleep)
  await until(() => processorMs(loop) > asleepMs + 1000, 'the loop')
  t.ok(processorMs(sleep) < asleepMs + 500, 'a thread that sleeps uses none')
})

t.test('a thread that is gone, and a system without such files, have none', async (t) => {
  for (const file of ['', '/proc/1/task/999999999/stat', '/dev/null']) {
    t.ok(Number.isNaN(processorMs(file)), file)
  }
})
