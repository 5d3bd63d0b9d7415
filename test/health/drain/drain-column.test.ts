import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { DrainFile } from '../../../src/health/drain/drain-file.ts'
import { DRAIN_CHECK_MS } from '../../../src/health/drain/drain-schedule.ts'
import { SlowStart } from '../../../src/health/slow-start.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import { until } from '../../support/until.ts'
import { recordOf, type TestRecord, TestSource, tableOf } from '../stage.ts'

const DURATION_MS = 100_000
const note = (): void => {}
const log = { debug: note, info: note, warning: note, error: note }

function stage(path: string, ...records: readonly TestRecord[]) {
  return stageAt(new FakeClock(), path, records)
}

function stageAt(clock: FakeClock, path: string, records: readonly TestRecord[]) {
  const source = new TestSource()
  source.put(...records)
  const timers = new FakeTimers()
  const file = new DrainFile({ path, clock, timers, log })
  /** Keys of the records whose drains were computed. */
  const computed: string[] = []
  const sitesOf = ({ key }: { readonly key: string }) => {
    computed.push(key)
    return []
  }
  const env = { clock, timers, log }
  const table = tableOf(source, { file, sitesOf, ...env })
  const { drains: drained } = table
  const ramp = new SlowStart({
    source,
    table,
    durationMs: DURATION_MS,
    clock,
    timers,
    log,
  })
  const batches: string[] = []
  table.subscribe((keys) => batches.push([...keys].sort().join(' ')))
  const pass = async (milliseconds: number): Promise<void> => {
    clock.pass(milliseconds)
    await timers.advance(milliseconds)
  }
  const put = async (text: string): Promise<void> => {
    writeFileSync(path, text)
    await pass(2 * DRAIN_CHECK_MS)
  }
  /** Indexes of the drained endpoints of a record. */
  const drainedIn = (key: string) => {
    const { endpoints } = drained.drainsOf(source.find(key)!)
    return [...endpoints.keys()].filter((i) => endpoints[i]!.size > 0)
  }
  const slowIn = (key: string) => ramp.slowStartOf(source.find(key)!)
  return { source, table, drained, file, batches, pass, put, drainedIn, slowIn, ramp, computed }
}

const a = recordOf('a', ['192.0.2.1=10', '192.0.2.2=10'])
const b = recordOf('b', ['192.0.2.1=10', '192.0.2.3=10'])
const c = recordOf('c', ['192.0.2.4=10'])

t.test('only records with selected endpoints change', async (t) => {
  const path = join(t.testdir({}), 'drains')
  const { put, batches, drainedIn, drained } = stage(path, a, b, c)
  t.strictSame(drainedIn('default/a'), [])
  await put('address:192.0.2.1 by=ops reason=racks\nsite:nowhere\n')
  t.strictSame(batches.splice(0), ['default/a default/b'])
  t.strictSame(drainedIn('default/a'), [0])
  t.equal(drained.note(3), 'drained: address:192.0.2.1 by ops: racks, site:nowhere')
  await put('address:192.0.2.1 by=ops reason=racks\nhost:c.k.test\n')
  t.strictSame(batches.splice(0), ['default/c'])
  await put('host:c.k.test\nhost:b.k.test\nnonsense')
  t.strictSame(batches.splice(0), [], 'an invalid file changes nothing')
  t.match(drained.note(1), /^drained: address:.* and 1 more$/)
  const place = `${path}:3`
  t.match(drained.problemGroups(), [
    { kind: 'drain', count: 1, problems: [{ place, object: path }] },
  ])
})

t.test('a drain costs nothing for records that another drain selects', async (t) => {
  const path = join(t.testdir({ drains: 'id:192.0.2.1\n' }), 'drains')
  const { put, batches, computed } = stage(path, a, b, c)
  computed.length = 0
  await put('id:192.0.2.1\naddress:192.0.2.4\n')
  await put('id:192.0.2.1\n')
  t.strictSame(batches, ['default/c', 'default/c'])
  t.strictSame(new Set(computed), new Set(['default/c']))
})

/** A clock with which each record takes a millisecond. */
class SlowClock extends FakeClock {
  override monotonic(): number {
    this.monotonicMs++
    return this.monotonicMs
  }
}

t.test(
  'a drain of many records leaves the event loop to other work, and is one batch',
  async (t) => {
    const count = 500
    const records = Array.from({ length: count }, (_, i) => recordOf(`r${i}`, ['192.0.2.1=10']))
    const path = join(t.testdir({}), 'drains')
    const {
      put,
      ramp,
      table,
      source,
      drained: health,
      drainedIn,
    } = stageAt(new SlowClock(), path, records)
    await Promise.all([health.ready, ramp.ready])
    for (const [text, drained] of [
      ['id:192.0.2.1\n', [0]],
      ['', []],
    ] as const) {
      const seen: string[] = []
      let hasEnded = false
      const unsubscribe = table.subscribe((keys) => {
        seen.push(...keys)
        hasEnded = !table.isChanging
      })
      await put(text)
      let turns = 0
      const turn = (): void => {
        turns++
        if (hasEnded) return
        // Changes that arrive meanwhile find the records in their new or in their old state.
        if (turns === 2) source.put(recordOf('r499', ['192.0.2.1=20']))
        if (turns === 3) source.remove('default/r498')
        if (turns === 4) source.put(records[498]!)
        setImmediate(turn)
      }
      turn()
      await until(() => hasEnded, 'the end of the batch')
      t.ok(turns > count / 10, `${turns} turns of other work`)
      t.equal(new Set(seen).size, seen.length, 'no record is reported twice')
      for (const { key } of records) t.strictSame(drainedIn(key), drained, key)
      unsubscribe()
    }
  },
)

t.test('at a start, a drain of many records leaves the event loop to other work', async (t) => {
  const count = 500
  const records = Array.from({ length: count }, (_, i) => recordOf(`r${i}`, ['192.0.2.1=10']))
  const path = join(t.testdir({ drains: 'id:192.0.2.1\n' }), 'drains')
  const clock = new SlowClock()
  const { put, source, table, drained, drainedIn } = stageAt(clock, path, records)
  /** Counts the turns of other work until a part is ready. */
  const turnsUntil = async (ready: Promise<void>): Promise<number> => {
    let turns = 0
    let isReady = false
    const turn = (): void => {
      turns++
      // Changes of records that the part has not reached.
      if (turns === 2) source.put(recordOf('r499', ['192.0.2.9=20']))
      const isThere = source.find('default/r498') !== undefined
      if (turns === 3 && isThere) source.remove('default/r498')
      if (!isReady) setImmediate(turn)
    }
    turn()
    await ready
    isReady = true
    return turns
  }
  const inDrains = await turnsUntil(drained.ready)
  t.ok(inDrains > count / 10, `${inDrains} turns while the drains are applied`)
  const timers = new FakeTimers()
  const how = { durationMs: DURATION_MS, clock, timers, log }
  const ramp = new SlowStart({ source, table, ...how })
  const inRamp = await turnsUntil(ramp.ready)
  t.ok(inRamp > count / 10, `${inRamp} turns while slow start compares`)
  const kept = records.slice(0, 498).map(({ key }) => key)
  t.strictSame([...drained.recordKeys].sort(), [...kept].sort())
  for (const key of kept) t.strictSame(drainedIn(key), [0], key)
  await put('')
  const isSlow = (key: string): boolean => ramp.slowStartOf(source.find(key)!).length === 1
  await until(() => kept.every(isSlow), 'slow starts after the end of the drain')
})

t.test('a drain that ends while it begins leaves nothing drained', async (t) => {
  const records = Array.from({ length: 200 }, (_, i) => recordOf(`r${i}`, ['192.0.2.1=10']))
  const path = join(t.testdir({}), 'drains')
  const { put, drained, drainedIn } = stageAt(new SlowClock(), path, records)
  await put('id:192.0.2.1\n')
  await put('')
  await until(() => {
    return records.every(({ key }) => drainedIn(key).length === 0) && !drained.isChanging
  }, 'the end of both batches')
  for (let turn = 0; turn < 500; turn++) await new Promise((resolve) => setImmediate(resolve))
  for (const { key } of records) t.strictSame(drainedIn(key), [], key)
})

t.test('drains follow the records', async (t) => {
  const path = join(t.testdir({ drains: 'address:192.0.2.3\n' }), 'drains')
  const { source, drainedIn, put, batches } = stage(path, a)
  source.put(b)
  t.strictSame(drainedIn('default/b'), [1])
  source.put(recordOf('b', ['192.0.2.3=10', '192.0.2.5=10']))
  t.strictSame(drainedIn('default/b'), [0])
  source.put(recordOf('b', ['192.0.2.5=10']))
  source.remove('default/a')
  await put('')
  t.strictSame(batches, [], 'nothing that is left was drained')
})

t.test('an endpoint returns through slow start', async (t) => {
  const path = join(t.testdir({}), 'drains')
  const { put, pass, slowIn, batches } = stage(path, a)
  await put('id:192.0.2.1\n')
  t.strictSame(slowIn('default/a'), [])
  await put('')
  t.strictSame(slowIn('default/a'), [{ address: '192.0.2.1', units: 1 }])
  t.strictSame(batches, ['default/a', 'default/a'])
  await pass(DURATION_MS / 2)
  t.equal(slowIn('default/a')[0]!.units, 11)
  await pass(DURATION_MS)
  t.strictSame(slowIn('default/a'), [])
})

t.test(
  'expiry brings an endpoint back through slow start, also of a drain from before the start',
  async (t) => {
    const until = new Date(new FakeClock().now() + 60_000).toISOString()
    const path = join(t.testdir({ drains: `address:192.0.2.1 until=${until}\n` }), 'drains')
    const { pass, slowIn, drainedIn } = stage(path, a, b)
    t.strictSame(drainedIn('default/b'), [0])
    await pass(60_000)
    t.strictSame(drainedIn('default/b'), [])
    for (const key of ['default/a', 'default/b']) {
      t.strictSame(slowIn(key), [{ address: '192.0.2.1', units: 1 }])
    }
  },
)

t.test('a change of the reason changes no answer', async (t) => {
  const path = join(t.testdir({ drains: 'id:192.0.2.1\n' }), 'drains')
  const { put, slowIn, drainedIn } = stage(path, a)
  await put('id:192.0.2.1 reason=longer\n')
  t.strictSame(drainedIn('default/a'), [0])
  t.strictSame(slowIn('default/a'), [])
})
