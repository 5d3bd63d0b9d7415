import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ResourceRegistry } from '../../../src/base/resource-registry.ts'
import { MetricsRegistry } from '../../../src/base/telemetry/metrics.ts'
import { DrainFile } from '../../../src/health/drain/drain-file.ts'
import { acquireShifts } from '../../../src/health/shift/acquire-shifts.ts'
import { unpackPlace } from '../../../src/records/pack.ts'
import { type Given, record } from '../../publish/record-zone-stage.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import { TestSource, tableOf } from '../stage.ts'

const PLAN = 'to=new steps=5%,25%,100% bake=10m'
const BAKE_MS = 600_000
const X = 'x.k.example.com'
const OLD = `${X} A 192.0.2.1 id=old weight=10`
const NEW = `${X} A 192.0.2.2,192.0.2.3 id=new weight=10`

/** The record `n/app` with this annotation. */
function app(shift: string | undefined, more: Partial<Given> = {}) {
  const annotations = shift === undefined ? {} : { 'sextant.io/shift': shift }
  return record({ rootHost: X, endpoints: [OLD, NEW], annotations, ...more })
}

/** One process after another, each with a clock that starts anew. */
function start({ path = '', source = new TestSource(), drains = '', wallMs = 1_700_000_000_000 }) {
  const clock = new FakeClock()
  clock.nowMs = wallMs
  const timers = new FakeTimers()
  const lines: string[] = []
  const note = (text: string): void => void lines.push(text)
  const log = { debug: note, info: note, warning: note, error: note }
  const metrics = new MetricsRegistry()
  const parts = { name: 'test', path, resources: new ResourceRegistry(), metrics }
  const file = drains === '' ? undefined : new DrainFile({ path: drains, clock, timers, log })
  const table = tableOf(source, { file, clock, timers, log })
  const { item: shifts, release } = acquireShifts({ source, table, clock, timers, log }, parts)
  const heard: string[][] = []
  table.subscribe((keys) => heard.push([...keys]))
  const pass = async (milliseconds: number): Promise<void> => {
    clock.pass(milliseconds)
    await timers.advance(milliseconds)
  }
  const percent = (key = 'n/app') => {
    const found = source.find(key)
    return found === undefined ? undefined : shifts.shiftOf(found)?.percent
  }
  return { source, shifts, release, pass, percent, lines, heard, metrics, clock }
}

t.test('each step lasts its time, then the shift is finished', async (t) => {
  const { source, shifts, pass, percent, lines, heard, metrics } = start({})
  source.put(app(undefined))
  t.equal(percent(), undefined)
  t.equal(shifts.note(3), '')
  source.put(app(PLAN))
  t.equal(percent(), 5)
  t.strictSame(lines, ['shift of n/app to new: step 1 of 3 (5 %) until 2023-11-14T22:23:20Z'])
  const record = { record: 'n/app', records: 1, to: 'new', steps: 3 }
  const running = { ...record, state: 'running', reason: '' }
  t.strictSame(shifts.reports(), [{ ...running, step: 1, share: 5, until: '2023-11-14T22:23:20Z' }])
  await pass(BAKE_MS - 1000)
  t.equal(percent(), 5)
  await pass(1000)
  t.equal(percent(), 25)
  t.strictSame(heard, [['n/app']])
  t.match(shifts.note(3), 'shift of n/app to new: step 2 of 3 (25 %) until 2023-11-14T22:33:20Z')
  await pass(BAKE_MS)
  t.equal(percent(), 100)
  await pass(10 * BAKE_MS)
  t.equal(percent(), 100)
  t.equal(lines.at(-1), 'shift of n/app to new: finished (100 %)')
  const finished = { ...record, state: 'finished', step: 3, share: 100, until: null, reason: '' }
  t.strictSame(shifts.reports(), [finished])
  t.match(await metrics.print(), 'sextant_kuadrant_shifts{source="test",state="finished"} 1')
  const before = lines.length
  source.put({ ...app(PLAN), down: ['192.0.2.2'] })
  t.equal(percent(), 100, 'a finished shift is not reverted')
  t.equal(lines.length, before)
})

t.test('a target that fails reverts the shift until the annotation is edited', async (t) => {
  const { source, shifts, pass, percent, lines, heard, metrics } = start({})
  source.put(app(PLAN))
  await pass(BAKE_MS)
  source.put({ ...app(PLAN), down: ['192.0.2.1'] })
  t.equal(percent(), 25, 'another endpoint does not matter')
  heard.length = 0
  source.put({ ...app(PLAN), down: ['192.0.2.3'] })
  t.equal(percent(), undefined)
  t.strictSame(heard, [['n/app']], 'at once')
  const text = 'shift of n/app to new: reverted at step 2 of 3 (25 %): 192.0.2.3 is down'
  t.equal(lines.at(-1), text)
  t.match(await metrics.print(), 'sextant_kuadrant_shifts{source="test",state="reverted"} 1')
  const reverted = { state: 'reverted', step: 2, share: null, until: null }
  t.match(shifts.reports(), [{ ...reverted, reason: '192.0.2.3 is down' }])
  source.put(app(PLAN))
  await pass(10 * BAKE_MS)
  source.put(app(PLAN, { endpoints: [OLD.replace('10', '20'), NEW] }))
  t.equal(percent(), undefined, 'it stays so')
  source.put(app(PLAN.replace('5%,', '10%,')))
  t.equal(percent(), 10, 'an edited plan begins')
  source.put({ ...app(PLAN), down: ['192.0.2.2'] })
  t.equal(percent(), undefined, 'not to a target that is down')
  source.put(app(undefined))
  source.put(app(PLAN))
  t.equal(percent(), 5, 'the annotation was removed in between')
})

t.test('a drain of a target reverts the shift', async (t) => {
  const path = join(t.testdir({ drains: 'id:new\n' }), 'drains')
  const source = new TestSource()
  source.put(app(PLAN))
  const { percent, lines } = start({ source, drains: path })
  t.equal(percent(), undefined)
  t.match(lines, [
    /drain begins/,
    /step 1 of 3/,
    /reverted at step 1 of 3 \(5 %\): 192\.0\.2\.2 is drained/,
  ])
})

t.test('the records of a host with one plan move together', async (t) => {
  const { source, pass, percent, heard } = start({})
  const of = (type: string, target: string, id: string) =>
    `${X} ${type} ${target} id=${id} weight=1`
  const six = [of('AAAA', '2001:db8::1', 'old'), of('AAAA', '2001:db8::2', 'new')]
  source.put(app(PLAN))
  await pass(BAKE_MS)
  source.put(app(PLAN, { name: 'six', endpoints: six }))
  t.equal(percent('n/six'), 25)
  heard.length = 0
  source.put({ ...app(PLAN, { name: 'six', endpoints: six }), down: ['2001:db8::2'] })
  t.strictSame([percent(), percent('n/six')], [undefined, undefined])
  t.strictSame(heard, [['n/six', 'n/app']])
})

t.test('a host that changes to another record keeps its shift', async (t) => {
  const { source, pass, percent } = start({})
  source.put(app(PLAN))
  await pass(BAKE_MS)
  source.replace(['n/app'], app(PLAN, { name: 'merged' }))
  t.equal(percent('n/merged'), 25)
  source.remove('n/merged')
  await pass(60_000)
  source.put(app(PLAN))
  t.equal(percent(), 25)
  source.remove('n/app')
  await pass(BAKE_MS)
  source.put(app(PLAN))
  t.equal(percent(), 5, 'it was forgotten')
})

for (const [name, stepMs] of [
  ['after a restart', 5000],
  ['with a clock that was set back for a year', -3e10],
  ['with a clock that was set forward for a year', 3e10],
] as const) {
  t.test(`a shift continues ${name}`, async (t) => {
    const path = join(t.testdir({}), 'shifts')
    const source = new TestSource()
    source.put(app(PLAN), app(PLAN.replace('10m', '1h'), { name: 'b', rootHost: X }))
    const first = start({ path, source })
    await first.pass(BAKE_MS)
    await first.pass(BAKE_MS / 2)
    t.strictSame([first.percent(), first.percent('n/b')], [25, 5])
    source.put({ ...app(PLAN.replace('10m', '1h'), { name: 'b' }), down: ['192.0.2.2'] })
    first.release()
    source.put(app(PLAN.replace('10m', '1h'), { name: 'b' }))
    const wallMs = first.clock.nowMs + stepMs
    const { percent, pass, lines, release } = start({ path, source, wallMs })
    t.strictSame([percent(), percent('n/b')], [25, undefined])
    t.match(lines.join('\n'), /n\/b to new: reverted at step 1 of 3 \(5 %\): 192\.0\.2\.2 is down/)
    await pass(BAKE_MS / 2 - 1000)
    t.equal(percent(), 25)
    await pass(1000)
    t.equal(percent(), 100, 'the time of both processes counts')
    release()
  })
}

t.test('a crash costs at most the time of the step', async (t) => {
  const path = join(t.testdir({}), 'shifts')
  const source = new TestSource()
  source.put(app(PLAN))
  const first = start({ path, source })
  await first.pass(BAKE_MS)
  // The file is written right after the step.
  await first.pass(1000)
  await first.pass(BAKE_MS / 2)
  const text = readFileSync(path)
  first.release()
  writeFileSync(path, text)
  const { percent, pass } = start({ path, source })
  t.equal(percent(), 25)
  await pass(BAKE_MS - 2000)
  t.equal(percent(), 25)
  await pass(2000)
  t.equal(percent(), 100)
})

t.test('an invalid file is ignored', async (t) => {
  const path = join(t.testdir({}), 'shifts')
  const source = new TestSource()
  source.put(app(PLAN))
  start({ path, source }).release()
  const whole = readFileSync(path, 'utf8')
  writeFileSync(path, whole.replace('"running"', '"walking"'))
  const { percent, lines, release } = start({ path, source })
  t.equal(percent(), 5)
  t.match(lines[0], /is not used: .*every shift begins with its first step/)
  release()
})

const ORDER = { id: '0123abcd', actor: 'ops', reason: 'new racks', createdMs: 1_700_000_000_000 }
const ORDERED = { plan: { to: 'new', steps: [5, 100], bakeMs: BAKE_MS }, order: ORDER }

/** Orders a shift of the host. */
function order({ source, shifts }: ReturnType<typeof start>, ordered = ORDERED): void {
  const hostKey = unpackPlace(app(undefined).packed).rootHostKey
  shifts.order(hostKey, ordered, [...source.records()])
}

t.test('an order shifts without an annotation, and its end restores the weights', async (t) => {
  const stage = start({})
  const { source, shifts, pass, percent, heard, lines } = stage
  source.put(app(undefined))
  order(stage)
  t.equal(percent(), 5)
  t.strictSame(heard.pop(), ['n/app'])
  const report = {
    ...{ id: ORDER.id, name: `${X}.`, actor: 'ops', reason: 'new racks' },
    created: '2023-11-14T22:13:20Z',
  }
  t.match(shifts.reports(), [{ record: 'n/app', to: 'new', step: 1, steps: 2, order: report }])
  await pass(BAKE_MS)
  t.equal(percent(), 100)
  source.put(app(undefined, { endpoints: [OLD, NEW, `${X} A 192.0.2.9 id=third`] }))
  t.equal(percent(), 100, 'an edit of the record keeps it')
  t.strictSame(shifts.endOrders('ffffffff'), [])
  t.match(shifts.endOrders(ORDER.id), [{ order: report }])
  t.equal(percent(), undefined)
  t.strictSame(heard.pop(), ['n/app'])
  t.equal(lines.at(-1), `shift ${ORDER.id} ends: its order was removed`)
  order(stage)
  t.equal(percent(), 5, 'the same order begins anew')
})

t.test('an annotation counts before an order', async (t) => {
  const stage = start({})
  const { source, shifts, percent } = stage
  source.put(app(undefined))
  order(stage)
  source.put(app('to=old steps=40% bake=10m'))
  t.equal(percent(), 40)
  t.equal(shifts.reports()[0]?.order, undefined)
  source.put(app(undefined))
  t.equal(percent(), 5, 'the order applies again')
  source.put(app('to=new steps=5%,100% bake=10m'))
  shifts.endOrders(ORDER.id)
  t.equal(percent(), 5, 'the same plan by an annotation is kept')
})

t.test('an order is reverted, and lasts over a restart', async (t) => {
  const path = join(t.testdir({}), 'shifts')
  const first = start({ path })
  first.source.put(app(undefined))
  order(first)
  await first.pass(BAKE_MS)
  t.ok(first.shifts.isStored)
  first.release()
  const second = start({ path })
  second.source.put(app(undefined))
  t.equal(second.percent(), 100)
  t.match(second.shifts.reports(), [{ step: 2, order: { id: ORDER.id } }])
  second.source.put({ ...app(undefined), down: ['192.0.2.2'] })
  t.equal(second.percent(), undefined)
  t.match(second.shifts.reports(), [{ state: 'reverted', reason: '192.0.2.2 is down' }])
  second.release()
  const third = start({ path })
  third.source.put(app(undefined))
  t.match(third.shifts.reports(), [{ state: 'reverted', order: { actor: 'ops' } }])
  third.shifts.endOrders(ORDER.id)
  third.release()
  const fourth = start({ path })
  fourth.source.put(app(undefined))
  t.strictSame(fourth.shifts.reports(), [])
})
