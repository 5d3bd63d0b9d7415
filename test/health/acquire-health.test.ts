import t from 'tap'
import { ResourceRegistry } from '../../src/base/resource-registry.ts'
import { SILENT_LOG } from '../../src/base/telemetry/log.ts'
import { acquireSlowStart } from '../../src/health/acquire-health.ts'
import type { HealthTable } from '../../src/health/health-table.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'
import { SLOW_START_STEPS } from '../support/slow-start-share.ts'
import { recordOf, TestSource, tableOf } from './stage.ts'

const DURATION_MS = 100_000
const up = recordOf('a', ['192.0.2.1=10', '192.0.2.2=10'])

t.test('a slow start continues over a reload, with the same source or another', async (t) => {
  const clock = new FakeClock()
  const timers = new FakeTimers()
  const log = SILENT_LOG
  const common = { clock, timers, log }
  const resources = new ResourceRegistry()
  const tables = new Map<TestSource, HealthTable>()
  const take = (source: TestSource, durationMs = DURATION_MS, name = 'manifests') => {
    const table = tables.get(source) ?? tableOf(source, common)
    tables.set(source, table)
    return acquireSlowStart(name, { source, table, durationMs, ...common }, '', resources)
  }
  const source = new TestSource()
  source.put({ ...up, down: ['192.0.2.1'] }, recordOf('b', ['192.0.2.1=1', '192.0.2.2=1']))
  const before = take(source)
  source.put(up)
  const stepMs = (2 * DURATION_MS) / SLOW_START_STEPS
  clock.pass(stepMs)
  await timers.advance(stepMs)

  const same = take(source)
  t.equal(same.item, before.item)

  const merged = new TestSource()
  merged.put(up)
  const after = take(merged)
  const risingOf = ({ item }: typeof before) => item.slowStartOf(up)
  t.not(after.item, before.item)
  t.strictSame(risingOf(after), [{ address: '192.0.2.1', units: 5 }])
  t.equal(risingOf(take(source, 2 * DURATION_MS))![0]!.units, 3, 'over twice the time')
  t.strictSame(risingOf(take(merged, DURATION_MS, 'others')), [], 'of another name')

  const peered = new TestSource()
  const peer = { ...up, key: 'peers/a.k.test' }
  peered.put(peer)
  const rising = [{ address: '192.0.2.1', units: 5 }]
  t.strictSame(take(peered).item.slowStartOf(peer), rising, 'of a host that got a peer')

  before.release()
  same.release()
  clock.pass(DURATION_MS)
  await timers.advance(DURATION_MS)
  t.strictSame(risingOf(after), [], 'it ends as well')
})
