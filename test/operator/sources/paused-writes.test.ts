import t from 'tap'
import { ApiError } from '../../../src/kube/api.ts'
import { PausedWrites } from '../../../src/operator/sources/paused-writes.ts'
import { turns } from '../../support/api-double.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'

function stage() {
  const [clock, timers] = [new FakeClock(), new FakeTimers()]
  const writes = new PausedWrites(clock, timers)
  const pass = async (ms: number): Promise<void> => {
    clock.pass(ms)
    await timers.advance(ms)
    await turns()
  }
  return { writes, pass }
}

t.test('all writes wait as long as the API server asks for', async (t) => {
  const { writes, pass } = stage()
  let postponed = 0
  const done: string[] = []
  const write = (name: string): Promise<void> => {
    return writes.run(async () => {
      if (postponed-- > 0) throw new ApiError(429, 'too many requests', 2)
      done.push(name)
    })
  }
  for (let i = 0; i < 30; i++) void write('a')
  await turns()
  t.equal(done.length, 30, 'as fast as they come')
  postponed = 1
  void write('b')
  await turns()
  void write('c')
  await pass(1900)
  t.equal(done.length, 30)
  await pass(100)
  t.strictSame(done.slice(30).sort(), ['b', 'c'])
})

t.test('the wait is bounded, and so are the tries', async (t) => {
  for (const [seconds, waitMs] of [
    [0, 1000],
    [3600, 10_000],
  ] as const) {
    const { writes, pass } = stage()
    let tries = 0
    let fault: unknown
    const postpone = async (): Promise<void> => {
      tries++
      throw new ApiError(429, 'too many requests', seconds)
    }
    writes.run(postpone).catch((error: unknown) => (fault = error))
    for (let i = 1; i < 10; i++) {
      await turns()
      t.equal(tries, i)
      await pass(waitMs)
    }
    t.equal(tries, 10)
    t.match(fault, { status: 429 }, 'the queue tries again later')
  }
})

t.test('other errors are not repeated', async (t) => {
  const { writes } = stage()
  let tries = 0
  const fail = async (): Promise<void> => {
    tries++
    throw new ApiError(503, 'unavailable', 5)
  }
  await t.rejects(writes.run(fail), /unavailable/)
  t.equal(tries, 1)
})
