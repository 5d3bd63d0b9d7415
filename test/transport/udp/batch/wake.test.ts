import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { loadLibc } from '../../../../src/transport/udp/batch/libc.ts'
import { WakeReader, Waker } from '../../../../src/transport/udp/batch/wake.ts'
import { until } from '../../../support/until.ts'

const libc = loadLibc()
const POLLIN = 1

/** True if the fd is readable just now. */
function isReadable(fd: number): boolean {
  const fds = Int32Array.of(fd, POLLIN)
  return libc.poll(libc.addressOf(fds), 1, 0) === 1
}

t.test('a wakeup is reported once, to one caller', async (t) => {
  let writes = 0
  const waker = new Waker({
    ...libc,
    write: (...args) => {
      writes++
      return libc.write(...args)
    },
  })
  const reader = new WakeReader(libc, waker)
  t.equal(reader.isCalled(), false)
  t.equal(isReadable(reader.fd), false)
  waker.call()
  waker.call()
  t.equal(writes, 1, 'a call that was not heard yet is enough')
  t.equal(isReadable(reader.fd), true)
  t.equal(reader.isCalled(), true)
  t.equal(reader.isCalled(), false)
  t.equal(isReadable(reader.fd), true, 'until it is cleared')
  reader.clear()
  t.equal(isReadable(reader.fd), false)
  reader.clear()
  waker.call()
  t.equal(isReadable(reader.fd), true)
  t.equal(reader.isCalled(), true)
  waker.close()
})

t.test('a call between the look and the sleep ends the sleep', async (t) => {
  const waker = new Waker(libc)
  const reader = new WakeReader(libc, waker)
  waker.call()
  reader.isCalled()
  reader.clear()
  t.equal(reader.isCalled(), false)
  waker.call()
  t.equal(isReadable(reader.fd), true)
  waker.close()
})

t.test('a thread that sleeps hears every call', async (t) => {
  const waker = new Waker(libc)
  const words = new Int32Array(new SharedArrayBuffer(8))
  const last = 2000
  const worker = new Worker(new URL('./wake-worker.ts', import.meta.url), {
    workerData: { wake: { fd: waker.fd, flag: waker.flag }, words, last },
  })
  t.teardown(async () => {
    await worker.terminate()
    waker.close()
  })
  const finished = once(worker, 'message')
  await once(worker, 'online')
  for (let number = 1; number <= last; number++) {
    Atomics.store(words, 0, number)
    waker.call()
    // Now and then it gets the time to fall asleep; else calls meet it at whatever it does.
    if (number % 50 === 0) await until(() => Atomics.load(words, 1) === number, `call ${number}`)
  }
  const [{ slept, missed }] = await finished
  t.equal(missed, 0, `${slept} sleeps`)
})
