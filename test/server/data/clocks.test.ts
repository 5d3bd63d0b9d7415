import t from 'tap'
import type { Clock } from '../../../src/base/clock.ts'
import { BatchClock, FinishClock } from '../../../src/server/data/clocks.ts'

/** A clock that advances by one with each reading. */
function counting(): Clock {
  let [now, monotonic] = [1000, 0]
  return { now: () => ++now, monotonic: () => ++monotonic }
}

t.test('a batch begins at one time', async (t) => {
  const clock = new BatchClock(counting())
  const first = clock.monotonic()
  t.equal(clock.monotonic(), first)
  t.equal(clock.now(), clock.now())
  clock.turn()
  t.equal(clock.monotonic(), first + 1)
})

t.test(
  'the first query of a batch and every eighth after it read when they are done',
  async (t) => {
    const clock = new FinishClock(counting())
    const read = (count: number) => Array.from({ length: count }, () => clock.monotonic())
    t.strictSame(read(17), [1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3])
    clock.turn()
    t.strictSame(
      read(9),
      [4, 4, 4, 4, 4, 4, 4, 4, 5],
      'a new batch does not have the time of the last',
    )
    t.equal(clock.now(), 1001)
  },
)
