import t from 'tap'
import { SILENT_LOG } from '../../src/base/telemetry/log.ts'
import { AddressHealth } from '../../src/health/address-health.ts'
import { Shifts } from '../../src/health/shift/shifts.ts'
import { SlowStart } from '../../src/health/slow-start.ts'
import { record } from '../publish/record-zone-stage.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'
import { TestSource, tableOf } from './stage.ts'

const log = SILENT_LOG

function stage() {
  const source = new TestSource()
  const others = new AddressHealth()
  const env = { clock: new FakeClock(), timers: new FakeTimers(), log }
  const table = tableOf(source, { found: [source.health, others], ...env })
  const heard: string[] = []
  const follow = (): void => {
    table.subscribe((keys) => heard.push([...keys].sort().join(' ')))
  }
  return { source, others, table, heard, follow, env }
}

t.test('readers hear of a change once, with what followers derive from it', (t) => {
  const { others, table, heard, follow } = stage()
  table.follow((keys) => {
    if (keys.has('n/a')) keys.add('n/b')
  })
  follow()
  others.add({ recordKey: 'n/a', address: '192.0.2.1', health: 'down' })
  others.publish()
  t.strictSame(heard.splice(0), ['n/a n/b'])
  table.announce(new Set(['n/a']))
  t.strictSame(heard, ['n/a'], 'a derived change concerns readers only')
  t.strictSame([...table.recordKeys()], ['n/a'])
  t.end()
})

t.test('what one writer found down of a record is down, whatever another one found', (t) => {
  const { source, others, table } = stage()
  const a = record({ name: 'a', rootHost: 'a.k.example.com', endpoints: [] })
  const note = (to: AddressHealth, last: number, health: 'up' | 'down', step: 'add' | 'remove') => {
    to[step]({ recordKey: a.key, address: `192.0.2.${last}`, health })
  }
  note(source.health, 1, 'up', 'add')
  note(source.health, 2, 'down', 'add')
  note(others, 1, 'down', 'add')
  t.strictSame(table.rowOf(a).health, { down: ['192.0.2.1', '192.0.2.2'], up: ['192.0.2.1'] })
  note(others, 1, 'down', 'remove')
  t.strictSame(table.rowOf(a).health.down, ['192.0.2.2'])
  t.end()
})

// A source announces records after it has changed the table, and then health.
t.test('no reader sees an address that is back without its slow start', (t) => {
  const { source, table, env } = stage()
  const shifts = new Shifts({ source, table, ...env })
  const slowStart = new SlowStart({ source, table, durationMs: 60_000, ...env })
  const host = 'x.k.example.com'
  const given = (name: string, address: string, more = {}) => {
    const annotations = { 'sextant.io/shift': 'to=new steps=5%,100% bake=10m', ...more }
    const endpoints = [
      `${host} A ${address} id=old weight=1`,
      `${host} A 192.0.2.9 id=new weight=1`,
    ]
    return record({ name, rootHost: host, endpoints, annotations })
  }
  const [one, two] = [given('one', '192.0.2.1'), given('two', '192.0.2.2')]
  source.put(one, { ...two, down: ['192.0.2.2'] })
  const view = table.with({ shifts, slowStart })
  const seen: string[] = []
  view.subscribe((keys) => {
    if (!keys.has('n/two')) return
    const { health, slowStart: rising, shift } = view.rowOf(source.find('n/two')!)
    seen.push(
      `${[...health.down].length} down, ${rising.length} rise, ${shift?.percent ?? 'reverted'}`,
    )
  })
  source.put(given('one', '192.0.2.1', { 'sextant.io/drain': 'all' }), two)
  t.match(seen, [/^0 down, 1 rise, reverted$/])
  t.ok(seen.every((row) => row === seen[0]))
  t.end()
})

t.test('a reverted shift is announced with the change that reverts it', (t) => {
  const { source, table, heard, follow, env } = stage()
  const shifts = new Shifts({ source, table, ...env })
  const host = 'x.k.example.com'
  const given = (name: string, address: string) => {
    const annotations = { 'sextant.io/shift': 'to=new steps=5%,100% bake=10m' }
    const endpoints = [
      `${host} A ${address} id=old weight=1`,
      `${host} A 192.0.2.9 id=new weight=1`,
    ]
    return record({ name, rootHost: host, endpoints, annotations })
  }
  const [one, two] = [given('one', '192.0.2.1'), given('two', '192.0.2.2')]
  source.put(one, two)
  follow()
  source.health.put('n/one', ['192.0.2.9'])
  source.health.publish()
  t.strictSame(heard, ['n/one n/two'])
  const percentOf = (key: string) => {
    return table.with({ shifts }).rowOf(source.find(key)!).shift?.percent ?? 'reverted'
  }
  t.strictSame(['n/one', 'n/two'].map(percentOf), ['reverted', 'reverted'])
  t.equal(table.rowOf(source.find('n/two')!).shift, undefined, 'a block without shifts')
  t.end()
})
