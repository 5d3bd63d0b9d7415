import t, { type Test } from 'tap'
import { scanName } from '../../../src/dns/name/name.ts'
import { printTargets } from '../../../src/peering/peer-endpoint.ts'
import { toPeerEndpoints } from '../../../src/peering/to-peer-endpoint.ts'
import { unpackRecord } from '../../../src/records/pack.ts'
import { tableOf } from '../../health/stage.ts'
import { zone } from '../record-zone-stage.ts'
import { aliasRecord, aliasStage, type Says } from './stage.ts'

/** A zone k.test of records with ALIAS, which follows names outside. */
function served(t: Test, world: Map<string, Says>, ...endpoints: readonly string[]) {
  const stage = aliasStage(t, [aliasRecord('r', ...endpoints)], world)
  const { aliases } = stage
  const built = zone({ apex: scanName('k.test.')! })
  const changes = [...aliases.records()].map((after) => ({ before: undefined, after }))
  built.records.apply(changes)
  aliases.subscribe((some) => built.records.apply(some))
  return { ...stage, ...built }
}

t.test('a name with nothing but an ALIAS exists, with or without addresses', async (t) => {
  const world = new Map<string, Says>([['lb.example', { ttl: 10, addresses: ['192.0.2.1'] }]])
  const { sink, pass } = served(t, world, 'a.k.test ALIAS lb.example')
  t.same([...sink.declared], ['a.k.test.'])
  await pass(300)
  t.same(sink.targets('a.k.test. A'), ['192.0.2.1'])
  t.same([...sink.declared], [])
  world.set('lb.example', 'NXDOMAIN')
  await pass(20_000)
  t.equal(sink.targets('a.k.test. A'), undefined)
  t.same([...sink.declared], ['a.k.test.'])
})

t.test('an ALIAS is united with A endpoints and other types, and contradicts no TTL', async (t) => {
  const world = new Map<string, Says>([['lb.example', { ttl: 10, addresses: ['192.0.2.1'] }]])
  const more = ['k.test A 192.0.2.9 weight=5 id=b', 'k.test TXT "x"']
  const { sink, pass, conflicts } = served(
    t,
    world,
    'k.test ALIAS lb.example weight=15 id=a',
    ...more,
  )
  t.same(sink.targets('k.test. A'), ['192.0.2.9'], 'the others serve')
  await pass(300)
  t.same(sink.targets('k.test. A'), ['192.0.2.1', '192.0.2.9'])
  t.equal(sink.sets.get('k.test. A')?.ttlSeconds, 10)
  t.same(
    sink.sets.get('k.test. A')?.candidates.map(({ weight }) => weight),
    [15, 5],
  )
  t.same(sink.targets('k.test. TXT'), ['"x"'])
  t.same(conflicts, [])
})

t.test('a CNAME at an apex acts as an ALIAS, and elsewhere does not', async (t) => {
  const world = new Map<string, Says>([['lb.example', { ttl: 10, addresses: ['192.0.2.1'] }]])
  const lines = ['k.test CNAME lb.example weight=1 id=a', 'k.test A 192.0.2.9 weight=0 id=b']
  const { sink, pass, conflicts } = served(t, world, ...lines, 'a.k.test CNAME lb.example')
  await pass(300)
  t.same(sink.targets('k.test. A'), ['192.0.2.1', '192.0.2.9'])
  t.equal(sink.targets('k.test. CNAME'), undefined)
  t.same(sink.targets('a.k.test. CNAME'), ['lb.example.'])
  t.same(conflicts, [])
})

t.test('a CNAME beside an ALIAS is a conflict', async (t) => {
  const lines = ['a.k.test ALIAS lb.example', 'a.k.test CNAME www.example']
  const { records } = served(t, new Map(), ...lines)
  const texts = [...records.conflicts.all()].map(({ text }) => text)
  t.match(texts.join(), 'CNAME beside ALIAS (both in n/r): the CNAME is not served')
})

t.test('what checks find of a target in our zones counts for the ALIAS', async (t) => {
  const { aliases, source, clock, timers, log } = aliasStage(t, [
    aliasRecord('a', 'k.test ALIAS www.k.test'),
    aliasRecord('www', 'www.k.test A 192.0.2.1,192.0.2.2'),
  ])
  const more = { found: [source.health], loans: aliases }
  const table = tableOf(aliases, { clock, timers, log, ...more })
  t.teardown(() => table.close())
  await table.drains.ready
  const changed: string[] = []
  table.subscribe((keys) => changed.push(...keys))
  source.health.put('n/www', ['192.0.2.2'])
  source.health.publish()
  t.same(changed.sort(), ['n/a', 'n/www'])
  t.same(table.rowOf(aliases.find('n/a')!).health.down, ['192.0.2.2'])
})

t.test('other sites get the ALIAS, not its addresses', async (t) => {
  const world = new Map<string, Says>([['lb.example', { ttl: 10, addresses: ['192.0.2.1'] }]])
  const lines = ['k.test ALIAS lb.example weight=15', 'k.test A 192.0.2.9 weight=5']
  const { aliases, pass } = aliasStage(t, [aliasRecord('r', ...lines)], world)
  await pass(300)
  const record = aliases.find('n/r')!
  const content = unpackRecord(record.packed)
  t.equal(content.endpoints.length, 3)
  const facts = { site: 's', key: record.key, down: [], up: [], sinceSeconds: 0 }
  t.same(
    toPeerEndpoints(content, facts).map(({ endpoint }) => printTargets(endpoint).recordType),
    ['ALIAS', 'A'],
  )
  const local = zone({ apex: scanName('kdrnt.')!, isLocalForm: true })
  local.records.apply([{ before: undefined, after: record }])
  t.same(local.sink.targets('k.test.kdrnt. A'), ['192.0.2.9'])
  t.same(local.sink.targets('w.k.test.kdrnt. TXT'), ['"5,k.test.kdrnt"'])
})
