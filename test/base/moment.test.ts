import t from 'tap'
import { recallMoment, thisMoment, writeMoment } from '../../src/base/moment.ts'
import { FakeClock } from '../support/setup.ts'

const AGE_MS_MAX = 10 * 365 * 24 * 3600 * 1000

t.test('a moment is written down and found again by another process', async (t) => {
  const clock = new FakeClock()
  const { seenMs } = thisMoment(clock)
  clock.pass(5000)
  const written = writeMoment(seenMs, clock)
  const later = new FakeClock()
  later.nowMs = clock.nowMs + 2000
  later.monotonicMs = 10
  t.strictSame(recallMoment(written, later), { seenMs: 10 - 7000, seenTimeMs: written })
})

t.test('a clock that was set meanwhile does not change an age', async (t) => {
  for (const stepMs of [86_400_000, -86_400_000]) {
    const clock = new FakeClock()
    const { seenMs } = recallMoment(clock.nowMs - 1000, clock)
    clock.nowMs += stepMs
    clock.pass(500)
    t.equal(clock.monotonic() - seenMs, 1500)
    t.equal(writeMoment(seenMs, clock), clock.nowMs - 1500, 'and is written by the new time')
  }
})

t.test('a time that can not be is bounded', async (t) => {
  const clock = new FakeClock()
  const { nowMs, monotonicMs } = clock
  const table = [
    { name: 'yet to come', given: nowMs + 86_400_000, want: [0, nowMs] },
    { name: 'before all time', given: -1e300, want: [AGE_MS_MAX, -1e300] },
  ]
  for (const { name, given, want } of table) {
    const { seenMs, seenTimeMs } = recallMoment(given, clock)
    t.strictSame([monotonicMs - seenMs, seenTimeMs], want, name)
  }
})
