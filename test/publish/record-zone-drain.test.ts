import t from 'tap'
import { scanName } from '../../src/dns/name/name.ts'
import type { StoredRecord } from '../../src/records/record-source.ts'
import { record, zone } from './record-zone-stage.ts'

const HOST = 'app.k.example.com'
/** What Kuadrant's DNSPolicy writes for two clusters in Europe and one in North America. */
const KUADRANT = record({
  rootHost: HOST,
  endpoints: [
    `${HOST} CNAME klb.${HOST}`,
    `klb.${HOST} CNAME geo-eu.${HOST} id=GEO-EU geo=GEO-EU`,
    `klb.${HOST} CNAME geo-na.${HOST} id=GEO-NA geo=GEO-NA`,
    `klb.${HOST} CNAME geo-eu.${HOST} id=default geo=*`,
    `geo-eu.${HOST} CNAME c1.${HOST} id=c1 weight=120`,
    `geo-eu.${HOST} CNAME c2.${HOST} id=c2 weight=60`,
    `geo-na.${HOST} CNAME c3.${HOST} id=c3 weight=120`,
    `c1.${HOST} A 192.0.2.1`,
    `c2.${HOST} A 192.0.2.2,192.0.2.3`,
    `c3.${HOST} A 192.0.2.4`,
  ],
})

function drained(lines: readonly string[], given: readonly StoredRecord[] = [KUADRANT]) {
  const served = zone()
  const { records, sink, health } = served
  records.apply(given.map((after) => ({ before: undefined, after })))
  const before = sink.print()
  const change = (now: readonly string[]): void => {
    health.drains = now
    records.apply(given.map((one) => ({ before: one, after: one })))
  }
  change(lines)
  const cnames = (label: string) => {
    const names = sink.targets(`${label}.${HOST}. CNAME`)
    return names?.map((name) => name.slice(0, name.indexOf('.')))
  }
  const addresses = (label: string) => sink.targets(`${label}.${HOST}. A`)
  return { ...served, before, change, cnames, addresses }
}

t.test('an address takes out the CNAMEs that lead only to it', async (t) => {
  const { cnames, addresses, records, change, sink, before, ignored } = drained([
    'address:192.0.2.1',
  ])
  t.strictSame(cnames('geo-eu'), ['c2'])
  t.strictSame(cnames('klb'), ['geo-eu', 'geo-na'])
  t.strictSame(addresses('c1'), ['192.0.2.1'], 'no client reaches this name')
  t.equal(records.out.drainedCount, 2)
  t.strictSame(ignored, [])
  change(['address:192.0.2.0/30'])
  t.strictSame(cnames('klb'), ['geo-na'], 'Europe and the default lead to nothing else')
  change(['address:192.0.2.2'])
  t.strictSame(addresses('c2'), ['192.0.2.3'], 'one target of two')
  t.strictSame(cnames('geo-eu'), ['c1', 'c2'])
  t.equal(records.out.drainedCount, 0)
  change([])
  t.strictSame(sink.print(), before)
})

t.test('a geo code takes out the default that repeats its endpoint', async (t) => {
  const { cnames, records } = drained(['geo:GEO-EU'])
  t.strictSame(cnames('klb'), ['geo-na'])
  t.equal(records.out.drainedCount, 2)
})

t.test('drains and health together decide what is out', async (t) => {
  const { cnames, health, records, change } = drained(['id:c1'])
  t.strictSame(cnames('geo-eu'), ['c2'])
  health.put('n/app', ['192.0.2.2', '192.0.2.3'])
  change(['id:c1'])
  t.strictSame(cnames('klb'), ['geo-na'], 'c1 is drained, c2 is down')
  health.put('n/app')
  change([])
  t.equal(records.out.drainedCount, 0)
})

t.test('if nothing is left, drains and health are ignored', async (t) => {
  const { cnames, addresses, ignored, sink, before, change } = drained([`zone:${HOST}`])
  t.strictSame(sink.print(), before)
  t.strictSame(cnames('klb'), ['geo-eu', 'geo-na'])
  t.strictSame(addresses('c2'), ['192.0.2.2', '192.0.2.3'])
  t.ok(ignored.includes(`${HOST}. CNAME true`))
  change([])
  t.ok(ignored.includes(`${HOST}. CNAME false`))
})

t.test('only the owners of drained records are built again', async (t) => {
  const others = Array.from({ length: 50 }, (_, i) => {
    const host = `h${i}.k.example.com`
    return record({ name: `h${i}`, rootHost: host, endpoints: [`${host} A 192.0.2.1,192.0.2.2`] })
  })
  const { sink, change } = drained([], [KUADRANT, ...others])
  sink.changes = 0
  change(['host:h7.k.example.com address:192.0.2.1'])
  t.equal(sink.changes, 1)
  t.strictSame(sink.targets('h7.k.example.com. A'), ['192.0.2.2'])
})

t.test('an endpoint that two records have is served until both are drained', async (t) => {
  const endpoints = ['x.k.example.com A 192.0.2.1 id=a', 'x.k.example.com A 192.0.2.2 id=b']
  const pair = [record({ name: 'one', endpoints }), record({ name: 'two', endpoints })]
  const { sink, records, change } = drained(['record:n/one id:a'], pair)
  const targets = () => sink.targets('x.k.example.com. A')
  t.strictSame(targets(), ['192.0.2.1', '192.0.2.2'])
  t.equal(records.out.drainedCount, 0)
  change(['id:a'])
  t.strictSame(targets(), ['192.0.2.2'])
  t.equal(records.out.drainedCount, 1)
})

t.test('two records may have the targets of an endpoint in different orders', async (t) => {
  const [one, two] = ['192.0.2.1,192.0.2.2,192.0.2.3', '192.0.2.3,192.0.2.1,192.0.2.2'].map(
    (targets, i) => record({ name: `r${i}`, endpoints: [`x.k.example.com A ${targets} id=a`] }),
  )
  const { sink, change, health } = drained([], [one!, two!])
  const targets = () => sink.targets('x.k.example.com. A')
  health.put('n/r0', ['192.0.2.1'])
  health.put('n/r1', ['192.0.2.1'])
  change([])
  t.strictSame(targets(), ['192.0.2.2', '192.0.2.3'], 'down in both')
  change(['address:192.0.2.2'])
  t.strictSame(targets(), ['192.0.2.3'], 'and one is drained')
  health.put('n/r1')
  change(['address:192.0.2.2'])
  t.strictSame(targets(), ['192.0.2.1', '192.0.2.3'], 'down in one of them')
  change(['address:192.0.2.1 record:n/r1'])
  t.strictSame(targets(), ['192.0.2.2', '192.0.2.3'], 'down in one and drained in the other')
})

t.test('TXT and NS are not drained', async (t) => {
  const endpoints = ['x.k.example.com TXT a id=a', 'x.k.example.com TXT b id=b']
  const { sink } = drained(['id:a'], [record({ endpoints })])
  t.equal(sink.targets('x.k.example.com. TXT')?.length, 2)
})

t.test('an edited record is drained as it is now', async (t) => {
  const { records, sink, health } = zone()
  health.drains = ['address:192.0.2.1']
  const x = 'x.k.example.com A'
  const before = record({ endpoints: [`${x} 192.0.2.1 id=a`, `${x} 192.0.2.2 id=b`] })
  const after = record({ endpoints: [`${x} 192.0.2.3 id=a`, `${x} 192.0.2.1 id=b`] })
  records.apply([{ before: undefined, after: before }])
  t.strictSame(sink.targets('x.k.example.com. A'), ['192.0.2.2'])
  records.apply([{ before, after }])
  t.strictSame(sink.targets('x.k.example.com. A'), ['192.0.2.3'])
  records.apply([{ before: after, after: undefined }])
  t.equal(records.out.drainedCount, 0)
  t.equal(sink.targets('x.k.example.com. A'), undefined)
})

t.test('the gateway-local form has what is in service, unless nothing is', async (t) => {
  const x = 'x.k.example.com'
  const www = 'www.k.example.com'
  for (const { name, endpoints, second = [], down = [], drains = [], want } of [
    { name: 'all is in service', endpoints: [`${x} A 192.0.2.1`], want: ['192.0.2.1'] },
    {
      name: 'a target is down, another one drained',
      endpoints: [`${x} A 192.0.2.1,192.0.2.2 id=a`, `${x} A 192.0.2.3 id=b`],
      down: ['192.0.2.1'],
      drains: ['id:b'],
      want: ['192.0.2.2'],
    },
    {
      name: 'all are',
      endpoints: [`${x} A 192.0.2.1,192.0.2.2 id=a`, `${x} A 192.0.2.3 id=b`],
      down: ['192.0.2.1', '192.0.2.2'],
      drains: ['id:b'],
      want: ['192.0.2.1', '192.0.2.2', '192.0.2.3'],
    },
    {
      name: 'another record has one that works',
      endpoints: [`${x} A 192.0.2.1`],
      second: [`${x} A 192.0.2.4`],
      drains: ['address:192.0.2.1'],
      want: ['192.0.2.4'],
    },
    {
      name: 'another record has none',
      endpoints: [`${x} A 192.0.2.1`],
      second: [`${x} A 192.0.2.4`],
      down: ['192.0.2.1'],
      drains: ['address:192.0.2.4'],
      want: ['192.0.2.1', '192.0.2.4'],
    },
    {
      name: 'what a CNAME leads to is drained',
      endpoints: [
        `${x} CNAME ${www} id=a weight=1`,
        `${x} CNAME b.test id=b weight=2`,
        `${www} A 192.0.2.1`,
      ],
      drains: ['address:192.0.2.1'],
      want: ['b.test.kdrnt.'],
    },
  ] as readonly LocalCase[]) {
    const { records, sink, health } = zone({ apex: scanName('kdrnt.')!, isLocalForm: true })
    const all = [
      record({ endpoints }),
      ...(second.length > 0 ? [record({ name: 'b', endpoints: second })] : []),
    ]
    for (const after of all) records.apply([{ before: undefined, after }])
    health.put(all[0]!.key, down)
    health.drains = drains
    records.apply(all.map((one) => ({ before: one, after: one })))
    const found = sink.targets(`${x}.kdrnt. A`) ?? sink.targets(`${x}.kdrnt. CNAME`)
    t.strictSame([...found!].sort(), want, name)
    const weights = sink.targets('w.k.example.com.kdrnt. TXT')
    if (name.includes('CNAME')) t.strictSame(weights, [`"2,${x}.kdrnt"`], 'also in the metadata')
    t.equal(records.out.allDown.length, 0, `${name}: the zone of the record reports it`)
    health.put(all[0]!.key, [])
    health.drains = []
    records.apply(all.map((one) => ({ before: one, after: one })))
    const { records: fresh, sink: anew } = zone({ apex: scanName('kdrnt.')!, isLocalForm: true })
    fresh.apply(all.map((after) => ({ before: undefined, after })))
    t.equal(records.digest, fresh.digest, `${name}: it is over`)
    t.strictSame([...sink.sets.keys()].sort(), [...anew.sets.keys()].sort(), name)
  }
})

interface LocalCase {
  readonly name: string
  readonly endpoints: readonly string[]
  readonly second?: readonly string[]
  readonly down?: readonly string[]
  readonly drains?: readonly string[]
  readonly want: readonly string[]
}
