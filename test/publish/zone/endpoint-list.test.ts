import t from 'tap'
import { runWhole } from '../../../src/base/slices.ts'
import { EndpointHistory } from '../../../src/base/telemetry/endpoint-history.ts'
import { EndpointLists, type EndpointQuery } from '../../../src/base/telemetry/endpoint-lists.ts'
import { EndpointStates } from '../../../src/publish/build/endpoint-states.ts'
import { listEndpoints } from '../../../src/publish/zone/endpoint-list.ts'
import type { PublishedZones } from '../../../src/publish/zone/zones.ts'
import type { RecordChange, StoredRecord } from '../../../src/records/record-source.ts'
import { FakeClock } from '../../support/setup.ts'
import { TestHealth } from '../../support/test-health.ts'
import { APEX, added, type Given, zone } from '../record-zone-stage.ts'

const HOUR_MS = 3600_000

function stage(...givens: Given[]) {
  const clock = new FakeClock()
  const history = new EndpointHistory(clock)
  const health = new TestHealth()
  const downReasons = (_: string, address: string) => `${address} refuses`
  const find = () => history
  const states = new EndpointStates({ place: 'block', downReasons, find })
  const onStates = (change: Parameters<typeof states.note>[1]) =>
    states.note('k.example.com.', change)
  const { records } = zone({ onStates }, health)
  const stored = new Map<string, StoredRecord>()
  const apply = (changes: readonly RecordChange[]): void => {
    for (const { after } of changes) stored.set(after!.key, after!)
    records.apply(changes)
    states.flush((actor) => ({ actor }))
  }
  const published = {
    zones: [{ records, apex: APEX, text: 'k.example.com.', serial: 1 }],
    findRecord: (key: string) => stored.get(key),
  } as unknown as PublishedZones
  const lists = new EndpointLists()
  lists.add(listEndpoints({ place: 'block', zones: published, downReasons }))
  apply(added(...givens))
  return {
    ...{ clock, history, health },
    select: (query: Partial<EndpointQuery> = {}) => {
      const page = { offset: 0, limit: 50, ...query }
      return runWhole(lists.select(page, history, clock.now()))
    },
    /** Builds the RRsets of a record again after a change of its health. */
    rebuild: (...keys: string[]) => {
      apply(keys.map((key) => ({ before: stored.get(key), after: stored.get(key) })))
    },
  }
}

t.test('endpoints are listed with their states, the worst first', async (t) => {
  const names = ['a', 'b', 'c', 'd', 'e']
  const endpoints = names.map((name, i) => {
    return `${name}.k.example.com A 192.0.2.${i},198.51.100.${i} id=${name}`
  })
  const { clock, health, select, rebuild } = stage(
    { endpoints },
    { name: 'text', endpoints: ['a.k.example.com TXT hello'] },
  )
  clock.pass(HOUR_MS)
  health.put('n/app', ['192.0.2.2', '198.51.100.2', '192.0.2.4'])
  health.slowStarts.set(
    'n/app',
    ['192.0.2.1', '198.51.100.1'].map((address) => ({ address, units: 15 })),
  )
  health.drains = ['address:192.0.2.3', 'address:198.51.100.3 reason=racks']
  rebuild('n/app')
  const page = select()
  t.strictSame(
    page.endpoints.map(({ name, state, detail, weightPercent }) => {
      return [name[0], state, detail, weightPercent]
    }),
    [
      ['c', 'down', '192.0.2.2 refuses; 198.51.100.2 refuses', 100],
      ['d', 'drained', 'address:192.0.2.3', 100],
      ['e', 'partly down', 'out: 192.0.2.4; 192.0.2.4 refuses', 100],
      ['b', 'slow start', '75 % of its weight', 75],
      ['a', 'up', '', 100],
    ],
  )
  const since = new Date(clock.now()).toISOString()
  t.match(page.endpoints[0], {
    zone: 'k.example.com.',
    type: 'A',
    setIdentifier: 'c',
    targets: ['192.0.2.2', '198.51.100.2'],
    record: 'n/app',
    since,
    before: 'up',
    transitions: [{ time: since, state: 'down', actor: { kind: 'probe', name: 'n/app' } }],
  })
  t.match(page.endpoints.at(-1), { since: '', before: '', transitions: [] })
  t.strictSame(page.states, { down: 1, drained: 1, 'partly down': 1, 'slow start': 1, up: 1 })
  const found = (query: Partial<EndpointQuery>) =>
    select(query).endpoints.map(({ name }) => name[0])
  t.strictSame(found({ state: 'not up' }), ['c', 'd', 'e', 'b'])
  t.strictSame(found({ state: 'up' }), ['a'])
  t.strictSame(found({ state: 'drained' }), ['d'])
  t.strictSame(found({ name: 'B.K.' }), ['b'])
  t.strictSame(found({ zone: 'K.example.com' }).length, 5)
  t.strictSame(found({ zone: 'example.com' }), [])
  t.strictSame(found({ offset: 1, limit: 2 }), ['d', 'e'])
})

t.test('transitions older than a day are left out, except the one in force', async (t) => {
  const { clock, health, select, rebuild } = stage({
    endpoints: ['k.example.com A 192.0.2.1 id=a', 'k.example.com A 192.0.2.2 id=b'],
  })
  const set = (...down: string[]) => {
    health.put('n/app', down)
    rebuild('n/app')
    clock.pass(HOUR_MS)
  }
  set('192.0.2.1')
  set()
  set('192.0.2.1')
  clock.pass(24 * HOUR_MS)
  const of = () => {
    const { before, transitions } = select({ name: 'k.example.com' }).endpoints[0]!
    return [before, ...transitions.map(({ state }) => state)]
  }
  t.strictSame(of(), ['up', 'down'], 'down for more than a day')
  set()
  t.strictSame(of(), ['up', 'down', 'up'])
  clock.pass(24 * HOUR_MS)
  t.strictSame(of(), ['down', 'up'])
  const { from, now } = select()
  t.equal(Date.parse(now) - Date.parse(from), 24 * HOUR_MS)
})

t.test('10 000 endpoints', async (t) => {
  const givens = Array.from({ length: 10_000 }, (_, i) => {
    const name = `n${i}.k.example.com`
    return { name: `r${i}`, rootHost: name, endpoints: [`${name} A 192.0.2.1 id=a`] }
  })
  const { health, select, rebuild } = stage(...givens)
  const half = givens.filter((_, i) => i % 2 === 0).map(({ name }) => `n/${name}`)
  for (const key of half) health.put(key, ['192.0.2.1'])
  rebuild(...half)
  const last = select({ offset: 9990, limit: 200 })
  t.equal(last.endpoints.length, 10)
  t.strictSame(last.states, { down: 5000, up: 5000 })
  t.equal(last.recordsOmitted, 0)
  const pages = [0, 200, 4900].map((offset) => select({ offset, limit: 200 }))
  t.ok(
    pages
      .flatMap(({ endpoints }) => endpoints.slice(0, 100))
      .every(({ state }) => state === 'down'),
  )
  t.equal(select({ state: 'not up' }).total, 5000)
  t.equal(select({ name: 'n4321.' }).total, 1)
})
