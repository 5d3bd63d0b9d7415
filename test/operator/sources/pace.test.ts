import t from 'tap'
import { Pace } from '../../../src/operator/sources/pace.ts'
import { turns } from '../../support/api-double.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'

t.test('a burst at once, then one in each interval, and a burst again after a rest', async (t) => {
  const [clock, timers] = [new FakeClock(), new FakeTimers()]
  const pace = new Pace(clock, timers, 100, 5)
  let done = 0
  const ask = (count: number): void => {
    for (let i = 0; i < count; i++) void pace.turn().then(() => done++)
  }
  const pass = async (ms: number): Promise<void> => {
    clock.pass(ms)
    await timers.advance(ms)
    await turns()
  }
  ask(20)
  await turns()
  t.equal(done, 5)
  await pass(50)
  t.equal(done, 10)
  await pass(100)
  t.equal(done, 20)
  await pass(1000)
  ask(20)
  await turns()
  t.equal(done, 25, 'no more than one burst, however long the rest was')
})
