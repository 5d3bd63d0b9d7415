import t from 'tap'
import { ZoneRefresher, type ZoneRefresherOptions } from '../../src/xfr/zone-refresher.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'

const GAP_MS = 100
const REFRESH_MS = 10_000
const RETRY_MS = 1000

/** A refresher, and the times of its refreshes in milliseconds since its start. */
function setUp(more: Partial<ZoneRefresherOptions> = {}) {
  const clock = new FakeClock()
  const timers = new FakeTimers()
  const startMs = clock.monotonicMs
  const at: number[] = []
  const faults: string[] = []
  const state = { isUp: true, tookMs: 0, expiryMs: Number.POSITIVE_INFINITY }
  const pending: (() => void)[] = []
  const refresh = async (): Promise<boolean> => {
    at.push(clock.monotonicMs - startMs)
    if (state.tookMs < 0) await new Promise<void>((resolve) => pending.push(resolve))
    clock.monotonicMs += Math.max(0, state.tookMs)
    return state.isUp
  }
  const refresher = new ZoneRefresher({
    clock,
    timers,
    guarded: async (work) => {
      try {
        await work()
      } catch (error) {
        faults.push((error as Error).message)
      }
    },
    refresh,
    pauseMs: (failures) => (failures === 0 ? REFRESH_MS : RETRY_MS * 2 ** (failures - 1)),
    gapMs: GAP_MS,
    expiryMs: () => state.expiryMs,
    expire: () => {
      at.push(-1)
      state.expiryMs = Number.POSITIVE_INFINITY
    },
    ...more,
  })
  const pass = async (milliseconds: number): Promise<void> => {
    for (let ms = 0; ms <= milliseconds; ms += GAP_MS) {
      if (ms > 0) clock.monotonicMs += GAP_MS
      await timers.advance(ms === 0 ? 0 : GAP_MS)
    }
  }
  return { refresher, clock, timers, at, faults, state, pending, pass, startMs }
}

t.test('a zone is refreshed at the start and after each pause', async (t) => {
  const { refresher, at, pass, timers } = setUp()
  await pass(REFRESH_MS)
  t.strictSame(at, [], 'not before the start')
  refresher.start()
  await pass(2 * REFRESH_MS)
  t.strictSame(at, [10_000, 20_000, 30_000])
  refresher.stop()
  t.equal(timers.count, 0)
  t.ok(refresher.signal.aborted)
})

t.test('failures are counted until a primary confirms the zone', async (t) => {
  const { refresher, at, pass, state } = setUp()
  state.isUp = false
  refresher.start()
  await pass(7000)
  t.strictSame(at, [0, 1000, 3000, 7000])
  state.isUp = true
  await pass(8000)
  t.strictSame(at.slice(4), [15_000])
  await pass(10_000)
  t.strictSame(at.slice(5), [25_000], 'the pause of a confirmed zone')
})

t.test('a refresh that throws is a failed one', async (t) => {
  const refresh = async (): Promise<boolean> => {
    throw new Error('bug')
  }
  const { refresher, pass, faults } = setUp({ refresh })
  refresher.start()
  await pass(3000)
  t.strictSame(faults, ['bug', 'bug', 'bug'])
})

t.test('a NOTIFY refreshes the zone soon, and a flood of them once per gap', async (t) => {
  const { refresher, at, pass } = setUp()
  refresher.start()
  await pass(5000)
  refresher.notify()
  await pass(0)
  t.strictSame(at, [0, 5000])
  for (let i = 0; i < 50; i++) refresher.notify()
  await pass(0)
  t.equal(at.length, 2)
  await pass(1000)
  t.strictSame(at, [0, 5000, 5000 + GAP_MS])
})

t.test('a NOTIFY during a refresh is followed by another refresh', async (t) => {
  const { refresher, at, pass, state, pending } = setUp()
  state.tookMs = -1
  refresher.start()
  await pass(1000)
  refresher.notify()
  refresher.notify()
  await pass(1000)
  t.strictSame(at, [0])
  state.tookMs = 0
  pending.shift()!()
  await refresher.settled()
  await pass(1000)
  t.strictSame(at, [0, 2000 + GAP_MS])
})

t.test('during a rest no refresh begins, whatever asks for it', async (t) => {
  const { refresher, at, pass, state, pending } = setUp()
  state.isUp = false
  state.tookMs = -1
  refresher.start()
  await pass(0)
  state.tookMs = 0
  refresher.rest(5000)
  pending.shift()!()
  await refresher.settled()
  refresher.notify()
  await pass(6000)
  t.strictSame(at, [0, 5000])
})

t.test('a queue decides when a refresh begins; a NOTIFY until then adds nothing', async (t) => {
  const queued: (() => Promise<void>)[] = []
  const queue = async (refresh: () => Promise<void>): Promise<void> => {
    queued.push(refresh)
  }
  const { refresher, at, pass } = setUp({ queue })
  refresher.start()
  await pass(1000)
  refresher.notify()
  await pass(1000)
  t.equal(queued.length, 1)
  await queued[0]!()
  await pass(1000)
  t.strictSame(at, [2000])
  t.equal(queued.length, 1)
  refresher.notify()
  await pass(0)
  t.equal(queued.length, 2)
  refresher.stop()
  await queued[1]!()
  t.strictSame(at, [2000], 'a stopped zone is not refreshed')
})

t.test('a zone expires if no primary confirms it, also while a refresh hangs', async (t) => {
  const { refresher, at, pass, state, startMs } = setUp()
  state.expiryMs = startMs + 2500
  state.tookMs = -1
  refresher.start()
  await pass(2400)
  t.strictSame(at, [0])
  await pass(100)
  t.strictSame(at, [0, -1])
  await pass(5000)
  t.strictSame(at, [0, -1], 'once')
})

t.test('a confirmation moves the expiry', async (t) => {
  const { refresher, at, pass, state, startMs } = setUp()
  state.expiryMs = startMs + 10_500
  refresher.start()
  await pass(9000)
  state.expiryMs = startMs + 30_000
  await pass(12_000)
  t.strictSame(at, [0, 10_000, 20_000])
})
