import t from 'tap'
import { Random } from '../../../src/base/random.ts'
import type { Probe, ProbeOutcome } from '../../../src/health/probes/probe.ts'
import { type ProbeResult, ProbeRunner } from '../../../src/health/probes/probe-runner.ts'
import { unknownState } from '../../../src/health/probes/probe-state.ts'
import { HEALTH_CHECK_DEFAULTS } from '../../../src/records/health-check.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'

const JITTER = 0.2

const INTERVAL_MS = 10_000
const CHECK = { ...HEALTH_CHECK_DEFAULTS, intervalMs: INTERVAL_MS, failureThreshold: 2 }
const GOOD: ProbeOutcome = { kind: 'healthy', httpStatus: 200 }
const BAD: ProbeOutcome = { kind: 'unhealthy', httpStatus: 500, reason: 'status 500' }

function probe(id: string, address = id, check = CHECK): Probe {
  return { id, namespace: 'n', address, hostname: '', check }
}

/** A runner on a clock that the test turns; every look takes `tookMs` and finds `outcome`. */
function stage(tookMs = 10) {
  const clock = new FakeClock()
  const timers = new FakeTimers()
  const looks: { readonly id: string; readonly atMs: number }[] = []
  const results: ProbeResult[] = []
  const fixture = { outcome: GOOD, underWay: 0, mostAtATime: 0 }
  const runner = new ProbeRunner({
    clock,
    timers,
    random: new Random(7),
    onResult: (result) => results.push(result),
    probe: ({ id }, signal) => {
      looks.push({ id, atMs: clock.monotonic() })
      fixture.mostAtATime = Math.max(fixture.mostAtATime, ++fixture.underWay)
      return new Promise((resolve) => {
        const { outcome } = fixture
        const end = (result: ProbeOutcome): void => {
          fixture.underWay--
          resolve(result)
        }
        const cancel = timers.after(tookMs, () => end(outcome))
        signal.addEventListener('abort', () => {
          cancel()
          end({ kind: 'skipped', reason: 'ended' })
        })
      })
    },
  })
  const pass = async (milliseconds: number): Promise<void> => {
    const STEP_MS = 10
    for (let passed = 0; passed < milliseconds; passed += STEP_MS) {
      clock.nowMs += STEP_MS
      clock.monotonicMs += STEP_MS
      await timers.advance(STEP_MS)
    }
  }
  return { clock, timers, runner, looks, results, fixture, pass }
}

t.test('every probe is done in its interval and jitter, and they do not bunch up', async (t) => {
  const { runner, looks, pass } = stage()
  for (let i = 0; i < 200; i++) runner.put(probe(`p${i}`))
  await pass(60_000)
  const byId = new Map<string, number[]>()
  for (const { id, atMs } of looks) byId.set(id, [...(byId.get(id) ?? []), atMs])
  t.equal(byId.size, 200)
  let longest = 0
  let shortest = Number.POSITIVE_INFINITY
  for (const times of byId.values()) {
    for (const [i, at] of times.slice(1).entries()) {
      longest = Math.max(longest, at - times[i]!)
      shortest = Math.min(shortest, at - times[i]!)
    }
  }
  const TICK_MS = 20
  t.ok(longest <= INTERVAL_MS + TICK_MS, `longest wait ${longest} ms`)
  t.ok(shortest >= INTERVAL_MS * (1 - JITTER) - TICK_MS, `shortest wait ${shortest} ms`)
  // 200 probes in 10 s are 20 a second; at the start they come within about two.
  const perSecond = new Map<number, number>()
  for (const { atMs } of looks) {
    const second = Math.floor(atMs / 1000)
    perSecond.set(second, (perSecond.get(second) ?? 0) + 1)
  }
  const late = [...perSecond].filter(([second]) => second > 40).map(([, count]) => count)
  t.ok(Math.max(...late) < 80, `at most ${Math.max(...late)} in a second, later on`)
})

t.test('a slow fleet never has more under way than the bound, and none is left out', async (t) => {
  const { runner, looks, fixture, pass } = stage(5000)
  const COUNT = 4000
  for (let i = 0; i < COUNT; i++) runner.put(probe(`p${i}`))
  await pass(60_000)
  t.equal(fixture.mostAtATime, 1024, 'and uses what there is')
  const counts = new Map<string, number>()
  for (const { id, atMs } of looks) {
    // The first ones begin at random times.
    if (atMs >= 20_000) counts.set(id, (counts.get(id) ?? 0) + 1)
  }
  t.equal(counts.size, COUNT)
  const numbers = [...counts.values()]
  t.ok(Math.max(...numbers) - Math.min(...numbers) <= 1, 'the longest overdue goes first')
})

t.test('an address that many share is not asked by all at once', async (t) => {
  const { runner, looks, fixture, pass } = stage(1000)
  for (let i = 0; i < 20; i++) runner.put(probe(`p${i}`, '192.0.2.1'))
  await pass(15_000)
  t.equal(fixture.mostAtATime, 4)
  t.equal(new Set(looks.map(({ id }) => id)).size, 20)
})

for (const { hosts, intervalMs } of [
  { hosts: 20, intervalMs: 1000 },
  { hosts: 300, intervalMs: 1000 },
  { hosts: 1000, intervalMs: 10_000 },
  { hosts: 2000, intervalMs: 300_000 },
]) {
  const what = `${hosts} hosts at one address, interval ${intervalMs / 1000} s`
  t.test(`${what}: all are down within the bound if it dies`, async (t) => {
    const tookMs = Math.min(8000, intervalMs)
    const { runner, fixture, pass } = stage(tookMs)
    const check = { ...CHECK, intervalMs, failureThreshold: 1 }
    const ids = Array.from({ length: hosts }, (_, i) => `p${i}`)
    for (const id of ids)
      runner.put(probe(id, '192.0.2.1', check), { ...unknownState(0), health: 'up' })
    fixture.outcome = BAD
    await pass((check.failureThreshold + 2) * intervalMs + 10_000)
    const up = ids.filter((id) => runner.stateOf(id)?.health !== 'down')
    t.strictSame(up, [])
  })
}

t.test('a test address that many share is not asked by all at once either', async (t) => {
  const { runner, fixture, pass } = stage(100)
  for (let i = 0; i < 50; i++) runner.put({ ...probe(`p${i}`), testAddress: '192.0.2.9' })
  await pass(INTERVAL_MS)
  t.equal(fixture.mostAtATime, 4)
})

t.test('an address goes down after the threshold, and what is known is kept', async (t) => {
  const { runner, results, fixture, pass } = stage()
  runner.put(probe('a'))
  await pass(3000)
  t.equal(runner.stateOf('a')?.health, 'up')
  fixture.outcome = BAD
  await pass(2 * INTERVAL_MS * (1 + JITTER))
  t.equal(runner.stateOf('a')?.health, 'up', 'two failures are not more than two')
  await pass(INTERVAL_MS * (1 + JITTER))
  t.match(runner.stateOf('a'), { health: 'down', reason: 'status 500' })
  t.equal(results.filter(({ before, after }) => before.health !== after.health).length, 2)
})

t.test('another check: what is known stays, counting begins anew, and soon', async (t) => {
  const { runner, looks, fixture, pass } = stage()
  fixture.outcome = BAD
  runner.put(probe('a'))
  await pass(40_000)
  t.equal(runner.stateOf('a')?.health, 'down')
  const before = looks.length
  fixture.outcome = GOOD
  runner.put(probe('a', 'a', { ...CHECK, port: 8080, intervalMs: 3_600_000 }))
  t.equal(runner.stateOf('a')?.health, 'down')
  await pass(3000)
  t.equal(looks.length, before + 1)
  t.equal(runner.stateOf('a')?.health, 'up')
})

t.test('the same check again changes nothing', async (t) => {
  const { runner, looks, pass } = stage()
  runner.put(probe('a'))
  await pass(3000)
  for (let i = 0; i < 10; i++) runner.put(probe('a'))
  await pass(3000)
  t.equal(looks.length, 1)
})

t.test('removed and named again while a look is under way', async (t) => {
  const { runner, looks, pass, timers } = stage(5000)
  runner.put(probe('a'))
  await pass(2000)
  t.equal(runner.underWay, 1)
  runner.remove('a')
  runner.put(probe('a'))
  await pass(10_000)
  t.equal(looks.length, 2)
  t.equal(runner.stateOf('a')?.health, 'up')
  runner.put(probe('a', 'b'))
  await pass(1000)
  runner.close()
  await pass(60_000)
  t.ok(looks.length <= 3)
  t.equal(timers.count, 0, 'nothing is left waiting')
})
