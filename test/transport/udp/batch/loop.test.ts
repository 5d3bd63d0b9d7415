import t from 'tap'
import { loadLibc } from '../../../../src/transport/udp/batch/libc.ts'
import { BatchLoop } from '../../../../src/transport/udp/batch/loop.ts'
import { WakeReader, Waker } from '../../../../src/transport/udp/batch/wake.ts'

t.test('a loop that is stopped does not sleep once more', (t) => {
  const libc = loadLibc()
  const waker = new Waker(libc)
  let calls = 0
  const loop = new BatchLoop(libc, new WakeReader(libc, waker), {
    onWake: () => {
      // The first call ends a sleep and takes what makes the eventfd readable.
      if (++calls === 1) waker.call()
      else loop.stop()
    },
    onHandOver: () => {},
    onFault: (error) => t.error(error),
    onBatch: () => {},
    onBatchEnd: () => {},
  })
  waker.call()
  const startMs = performance.now()
  loop.run()
  t.equal(calls, 2)
  t.ok(performance.now() - startMs < 500, 'ends at once')
  waker.close()
  t.end()
})
