import fc from 'fast-check'
import t from 'tap'
import { SILENT_LOG } from '../../src/base/telemetry/log.ts'
import { compareServed } from '../../src/health/served-addresses.ts'
import { SlowStart, slowStartUnits } from '../../src/health/slow-start.ts'
import { SETTLE_MS } from '../../src/health/slow-start-bounds.ts'
import { SLOW_START_UNITS, type SlowStartUnits } from '../../src/health/slow-start-units.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'
import { SLOW_START_STEPS } from '../support/slow-start-share.ts'
import { recordOf, type TestRecord, TestSource, tableOf } from './stage.ts'

const DURATION_MS = 100_000
const STEP_MS = DURATION_MS / SLOW_START_STEPS

t.test('a straight line, in steps, to full weight and never to none', async () => {
  const elapsed = fc.integer({ min: 0, max: 2 * DURATION_MS })
  const property = fc.property(elapsed, (elapsedMs) => {
    const units = slowStartUnits(elapsedMs, DURATION_MS)
    const line = Math.min(1, elapsedMs / DURATION_MS)
    const isNear = Math.abs(units / SLOW_START_UNITS - line) <= 0.5 / SLOW_START_STEPS + 1e-9
    return units >= 1 && units <= SLOW_START_UNITS && (isNear || elapsedMs >= DURATION_MS)
  })
  fc.assert(property, { seed: 1, numRuns: 500 })
})

function stage(...records: readonly TestRecord[]) {
  const source = new TestSource()
  source.put(...records)
  const clock = new FakeClock()
  const timers = new FakeTimers()
  const log = SILENT_LOG
  const table = tableOf(source, { clock, timers, log })
  const ramp = new SlowStart({
    source,
    table,
    durationMs: DURATION_MS,
    clock,
    timers,
    log,
  })
  const batches: ReadonlySet<string>[] = []
  table.subscribe((keys) => batches.push(keys))
  const pass = async (milliseconds: number): Promise<void> => {
    clock.monotonicMs += milliseconds
    await timers.advance(milliseconds)
  }
  /** What rises of the addresses that the record serves, in order. */
  const slowStartOf = (key: string): readonly SlowStartUnits[] => {
    const record = source.find(key)
    if (record === undefined) return []
    const { health, drains } = table.rowOf(record)
    const content = { ...record, down: health.down, drains }
    const { are } = compareServed(content, content)
    return ramp.slowStartOf(record).filter(({ address }) => are.has(address))
  }
  const unitsOf = (key: string) => slowStartOf(key).map(({ units }) => units)
  const risesIn = (key: string) => slowStartOf(key).map(({ address }) => address)
  return { source, table, ramp, batches, pass, slowStartOf, unitsOf, risesIn, timers }
}

const up = recordOf('a', ['192.0.2.1=10', '192.0.2.2=10'])
const down = { ...up, down: ['192.0.2.1'] }

t.test('a returning address gets its weight in steps, one change per step', async (t) => {
  const { source, batches, pass, unitsOf, timers } = stage(down)
  t.strictSame(unitsOf('default/a'), [], 'what is down does not rise')
  source.put(up)
  t.strictSame(unitsOf('default/a'), [1])
  t.equal(batches.length, 1)
  const seen: number[] = []
  for (let step = 1; step <= SLOW_START_STEPS; step++) {
    await pass(STEP_MS)
    seen.push(unitsOf('default/a')?.[0] ?? SLOW_START_UNITS)
    t.equal(batches.length, 1 + step, 'one change a step')
  }
  t.strictSame(seen, [3, 5, 7, 9, 11, 13, 15, 17, 19, 20])
  t.equal(timers.count, 0, 'nothing is left to do')
})

t.test('many addresses in slow start are one change per step', async (t) => {
  const names = Array.from({ length: 50 }, (_, i) => `r${i}`)
  const records = names.map((name) => recordOf(name, ['192.0.2.1=1', '192.0.2.2=1']))
  const { source, batches, pass, ramp } = stage(
    ...records.map((record) => ({ ...record, down: ['192.0.2.1'] })),
  )
  for (const record of records.slice(0, 25)) source.put(record)
  await pass(STEP_MS / 2)
  for (const record of records.slice(25)) source.put(record)
  t.equal(ramp.count, 50)
  batches.length = 0
  await pass(2 * DURATION_MS)
  t.equal(ramp.count, 0)
  t.ok(batches.length <= SLOW_START_STEPS + 1, `${batches.length} changes`)
})

t.test('down again, and gone, while it rises', async (t) => {
  const { source, table, pass, unitsOf, ramp, timers } = stage(down)
  source.put(up)
  await pass(2 * STEP_MS)
  source.put(down)
  t.strictSame(unitsOf('default/a'), [])
  source.put(up)
  t.strictSame(unitsOf('default/a'), [1], 'from the beginning')
  source.remove('default/a')
  await pass(DURATION_MS)
  t.equal(timers.count, 0)
  ramp.close()
  table.close()
  t.equal(source.listenerCount, 0)
})

t.test('an edit of the record does not end its rise', async (t) => {
  const { source, pass, unitsOf } = stage(down)
  source.put(up)
  await pass(3 * STEP_MS)
  source.put(weighted('192.0.2.1', '192.0.2.2', '192.0.2.3'))
  t.strictSame(unitsOf('default/a'), [7, 1])
})

function weighted(...addresses: readonly string[]): TestRecord {
  return recordOf(
    'a',
    addresses.map((address) => `${address}=10`),
  )
}

function without(record: TestRecord, ...addresses: readonly string[]): TestRecord {
  return { ...record, down: addresses }
}

const both = weighted('192.0.2.1', '192.0.2.2')
const first = weighted('192.0.2.1')

for (const { name, given, want } of [
  {
    name: 'what was down and is back rises',
    given: [without(both, '192.0.2.2'), both],
    want: ['192.0.2.2'],
  },
  {
    name: 'a target that was removed and added again starts slowly',
    given: [both, first, both],
    want: ['192.0.2.2'],
  },
  {
    name: 'what is new beside others rises',
    given: [first, weighted('192.0.2.1', '192.0.2.3', '192.0.2.4')],
    want: ['192.0.2.3', '192.0.2.4'],
  },
  {
    name: 'what takes the place of some rises',
    given: [both, weighted('192.0.2.1', '192.0.2.3')],
    want: ['192.0.2.3'],
  },
  {
    name: 'what takes the place of all has its full weight',
    given: [both, weighted('192.0.2.3', '192.0.2.4')],
    want: [],
  },
  {
    name: 'what is new beside addresses that are down has its full weight',
    given: [without(first, '192.0.2.1'), without(both, '192.0.2.1')],
    want: [],
  },
  {
    name: 'what is new and down does not rise',
    given: [first, without(both, '192.0.2.2')],
    want: [],
  },
  {
    name: 'what is new and down rises once it is up',
    given: [first, without(both, '192.0.2.2'), both],
    want: ['192.0.2.2'],
  },
  {
    name: 'what is new rises not where nothing has a weight',
    given: [recordOf('a', ['192.0.2.1']), recordOf('a', ['192.0.2.1', '192.0.2.2'])],
    want: [],
  },
  {
    name: 'other weights alone have nothing rise',
    given: [both, recordOf('a', ['192.0.2.1=10', '192.0.2.2=90'])],
    want: [],
  },
  {
    name: 'what is removed while it rises does not any more',
    given: [first, both, first],
    want: [],
  },
]) {
  t.test(name, async (t) => {
    const [start, ...changes] = given
    const { source, pass, risesIn, ramp } = stage(start!)
    await pass(SETTLE_MS)
    for (const record of changes) source.put(record)
    t.strictSame(risesIn('default/a'), want)
    t.equal(ramp.count, want.length)
  })
}

t.test('removed while it rises, and back: from the beginning', async (t) => {
  const { source, pass, unitsOf, timers } = stage(first)
  await pass(SETTLE_MS)
  source.put(both)
  await pass(2 * STEP_MS)
  t.strictSame(unitsOf('default/a'), [5])
  source.put(first)
  source.put(both)
  t.strictSame(unitsOf('default/a'), [1])
  source.put(first)
  await pass(STEP_MS)
  t.equal(timers.count, 0, 'nothing is left to do')
})

t.test('a record has its full weights until it is whole', async (t) => {
  const { source, pass, risesIn } = stage(first)
  const three = weighted('192.0.2.1', '192.0.2.2', '192.0.2.3')
  source.put(both)
  t.strictSame(risesIn('default/a'), [], 'just after the start')
  await pass(SETTLE_MS)
  source.put(three)
  t.strictSame(risesIn('default/a'), ['192.0.2.3'])
  source.remove('default/a')
  source.put(first)
  t.strictSame(risesIn('default/a'), [], 'first seen')
  await pass(SETTLE_MS - 1)
  source.put(both)
  t.strictSame(risesIn('default/a'), [], 'put together')
  await pass(1)
  source.put(three)
  t.strictSame(risesIn('default/a'), ['192.0.2.3'], 'whole')
})

/** What stands for the host of `record` once a peer has endpoints of it. */
const mergedOf = (record: TestRecord): TestRecord => ({ ...record, key: 'peers/a.k.test' })

for (const { name, given, want } of [
  {
    name: 'a host that gets its first peer has what rises go on, and the peer its full weight',
    given: [mergedOf(weighted('192.0.2.1', '192.0.2.2', '192.0.2.3'))],
    want: { 'peers/a.k.test': ['192.0.2.1 at 7'] },
  },
  {
    name: 'what the other record does not serve does not rise',
    given: [mergedOf(weighted('192.0.2.2', '192.0.2.3'))],
    want: {},
  },
  {
    name: 'nor what is down in it',
    given: [mergedOf(without(both, '192.0.2.1'))],
    want: {},
  },
  {
    name: 'several records may take its place',
    given: [mergedOf(first), { ...both, key: 'other/a' }],
    want: { 'peers/a.k.test': ['192.0.2.1 at 7'], 'other/a': ['192.0.2.1 at 7'] },
  },
  {
    name: 'records of other hosts have nothing of it',
    given: [recordOf('b', ['192.0.2.1=10', '192.0.2.2=10'])],
    want: {},
  },
]) {
  t.test(name, async (t) => {
    const { source, pass, slowStartOf, ramp, timers } = stage(down)
    source.put(up)
    await pass(3 * STEP_MS)
    source.replace(['default/a'], ...given)
    const rises = [...source.records()].flatMap(({ key }) => {
      const texts = slowStartOf(key).map((one) => `${one.address} at ${one.units}`)
      return texts.length === 0 ? [] : [[key, texts]]
    })
    t.strictSame(Object.fromEntries(rises), want)
    await pass(DURATION_MS - 3 * STEP_MS)
    t.equal(ramp.count, 0, 'when it would have ended as it was')
    t.equal(timers.count, 0)
  })
}

t.test('a host that loses its last peer has what rises go on', async (t) => {
  const { source, pass, unitsOf } = stage(without(both, '192.0.2.1'))
  source.put(both)
  source.replace(['default/a'], mergedOf(weighted('192.0.2.1', '192.0.2.2', '192.0.2.3')))
  await pass(2 * STEP_MS)
  t.strictSame(unitsOf('peers/a.k.test'), [5])
  source.replace(['peers/a.k.test'], both)
  t.strictSame(unitsOf('default/a'), [5])
  t.strictSame(unitsOf('peers/a.k.test'), [])
})
