import t from 'tap'
import { HOLDERS_MAX } from '../../../src/publish/build/owner-holders.ts'
import type { StoredRecord } from '../../../src/records/record-source.ts'
import { TestHealth } from '../../support/test-health.ts'
import { added, type Given, record, zone } from '../record-zone-stage.ts'

t.test('a new zone has its default NS, which goes where a record has one', (t) => {
  const { records, sink } = zone()
  t.strictSame(sink.targets('k.example.com. NS'), ['ns1.k.example.com.'])
  records.apply(added({ endpoints: ['k.example.com NS ns9.k.example.com'] }))
  t.strictSame(sink.targets('k.example.com. NS'), ['ns9.k.example.com.'])
  t.end()
})

t.test('a CNAME at the apex has to go for the default NS, which is not of the Corefile', (t) => {
  const { records, conflicts } = zone()
  records.apply(added({ name: 'c', endpoints: ['k.example.com CNAME x.example.org'] }))
  t.strictSame(conflicts, [
    'k.example.com.: CNAME (n/c) beside the SOA and the default NS: the CNAME is not served, because a CNAME must be alone; delete it',
  ])
  t.end()
})

interface Conflict {
  readonly name: string
  readonly given: readonly Given[]
  readonly sets: { readonly [key: string]: readonly string[] | undefined }
  readonly ttl?: number
  readonly warning?: RegExp
}

const X = 'x.k.example.com.'
const Y = 'y.k.example.com.'

const CONFLICTS: readonly Conflict[] = [
  {
    name: 'the CNAME of an earlier record beats other types',
    given: [
      { name: 'b', endpoints: ['x.k.example.com A 192.0.2.1'] },
      { name: 'a', endpoints: ['x.k.example.com CNAME y.k.example.com'] },
    ],
    sets: { [`${X} CNAME`]: ['y.k.example.com.'], [`${X} A`]: undefined },
    warning:
      /CNAME \(n\/a\) beside A \(n\/b\): the CNAME is served, because a CNAME must be alone; delete one of them$/,
  },
  {
    name: 'an older record comes first whatever its name',
    given: [
      {
        name: 'a',
        created: '2026-02-02T00:00:00Z',
        endpoints: ['x.k.example.com CNAME y.k.example.com'],
      },
      { name: 'b', created: '2026-01-01T00:00:00Z', endpoints: ['x.k.example.com A 192.0.2.1'] },
    ],
    sets: { [`${X} A`]: ['192.0.2.1'], [`${X} CNAME`]: undefined },
    warning:
      /CNAME \(n\/a\) beside A \(n\/b\): the CNAME is not served, because a CNAME must be alone; delete one of them$/,
  },
  {
    name: 'a CNAME at the apex is not served',
    given: [{ endpoints: ['k.example.com CNAME y.example.org'] }],
    sets: { 'k.example.com. CNAME': undefined },
    warning: /CNAME \(n\/app\) beside/,
  },
  {
    name: 'the lowest TTL is served for all',
    given: [
      { name: 'a', endpoints: ['x.k.example.com A 192.0.2.1 ttl=300'] },
      { name: 'b', endpoints: ['x.k.example.com A 192.0.2.2 ttl=60'] },
    ],
    sets: { [`${X} A`]: ['192.0.2.1', '192.0.2.2'] },
    ttl: 60,
    warning: /TTL 300 \(n\/a\) and 60 \(n\/b\): 60 is served; set the same TTL for both$/,
  },
  {
    name: 'of one set identifier with different content the first is served',
    given: [
      { name: 'a', endpoints: ['x.k.example.com A 192.0.2.1 id=eu weight=1'] },
      { name: 'b', endpoints: ['x.k.example.com A 192.0.2.2 id=eu weight=1'] },
    ],
    sets: { [`${X} A`]: ['192.0.2.1'] },
    warning:
      /set identifier "eu" with targets 192.0.2.1 \(n\/a\) and 192.0.2.2 \(n\/b\): the first is served, because an identifier names one endpoint; give each/,
  },
  {
    name: 'of a record that loses a set identifier, no type is served',
    given: [
      { name: 'a', endpoints: ['x.k.example.com A 192.0.2.1 id=eu'] },
      {
        name: 'b',
        endpoints: [
          'x.k.example.com AAAA 2001:db8::2 id=eu',
          'x.k.example.com A 192.0.2.2 id=eu ttl=5',
          'x.k.example.com A 192.0.2.3 id=us',
        ],
      },
      { name: 'c', endpoints: ['x.k.example.com AAAA 2001:db8::3 id=eu'] },
    ],
    sets: { [`${X} A`]: ['192.0.2.1', '192.0.2.3'], [`${X} AAAA`]: ['2001:db8::3'] },
    warning: /set identifier "eu" with targets 192.0.2.1 \(n\/a\) and 192.0.2.2 \(n\/b\)/,
  },
  {
    name: 'equal endpoints of two records are one, without a warning',
    given: [
      { name: 'a', endpoints: ['x.k.example.com A 192.0.2.1 id=eu weight=1'] },
      { name: 'b', endpoints: ['x.k.example.com A 192.0.2.1 id=eu weight=1'] },
    ],
    sets: { [`${X} A`]: ['192.0.2.1'] },
  },
]

t.test('records that disagree are settled by rule, in any order of arrival', (t) => {
  for (const { name, given, sets, ttl, warning } of CONFLICTS) {
    for (const order of [given, [...given].reverse()]) {
      const { records, sink, conflicts } = zone()
      records.apply(added(...order))
      for (const [key, want] of Object.entries(sets)) t.strictSame(sink.targets(key), want, name)
      if (ttl !== undefined) t.equal(sink.sets.get(`${X} A`)?.ttlSeconds, ttl, name)
      if (warning === undefined) t.strictSame(records.conflicts.all(), [], name)
      else t.match(conflicts[conflicts.length - 1], warning, name)
      t.equal(records.conflicts.count, warning === undefined ? 0 : 1, name)
    }
  }
  t.end()
})

t.test('the first 1 024 records of a name count, in any order of arrival and removal', (t) => {
  const numbered = (i: number): Given => ({
    name: `r${String(i).padStart(4, '0')}`,
    endpoints: [`x.k.example.com A 10.0.${i >> 8}.${i & 255}`],
  })
  const all = Array.from({ length: HOLDERS_MAX + 40 }, (_, i) => record(numbered(i)))
  const changes = all.map((after) => ({ before: undefined, after }))
  const fitting = all.slice(0, HOLDERS_MAX)
  const expected = zone()
  expected.records.apply(fitting.map((after) => ({ before: undefined, after })))
  for (const order of [changes, [...changes].reverse()]) {
    const { records, sink, conflicts } = zone()
    records.apply(order)
    t.equal(records.digest, expected.records.digest)
    t.strictSame(conflicts, [
      'x.k.example.com.: more than 1024 records have endpoints at that name; only the first 1024 are served',
    ])
    t.equal(records.conflicts.all()[0]?.key, 'n/r1024')
    t.equal(records.recordCount, all.length)
    records.apply(all.slice(0, 40).map((before) => ({ before, after: undefined })))
    t.equal(sink.targets(`${X} A`)?.length, HOLDERS_MAX)
    t.equal(records.conflicts.count, 0)
    records.apply(all.slice(40).map((before) => ({ before, after: undefined })))
    t.strictSame(sink.targets(`${X} A`), undefined)
  }
  t.end()
})

t.test('equal endpoints make one candidate, several codes share one endpoint', (t) => {
  const { records, sink } = zone()
  records.apply(
    added(
      { name: 'a', endpoints: ['x.k.example.com A 192.0.2.1 id=eu geo=IE+GB'] },
      { name: 'b', endpoints: ['x.k.example.com A 192.0.2.1 id=eu geo=GB+IE'] },
    ),
  )
  const { candidates } = sink.sets.get(`${X} A`)!
  t.strictSame(
    candidates.map((c) => c.code?.text),
    ['IE', 'GB'],
  )
  t.equal(candidates[0]?.rdataIndexes, candidates[1]?.rdataIndexes)
  t.end()
})

t.test('endpoints that are down are served only if no others exist', (t) => {
  const chain = [
    'x.k.example.com CNAME a.k.example.com id=a weight=1',
    'x.k.example.com CNAME b.k.example.com id=b weight=1',
    'a.k.example.com A 192.0.2.1',
    'b.k.example.com A 192.0.2.2,192.0.2.3',
  ]
  const down = (...addresses: string[]) => {
    const { records, sink, health } = zone()
    health.put('n/app', addresses)
    records.apply(added({ endpoints: chain }))
    return [sink.targets(`${X} CNAME`)?.join(), sink.targets('b.k.example.com. A')?.join()]
  }
  t.strictSame(down(), ['a.k.example.com.,b.k.example.com.', '192.0.2.2,192.0.2.3'])
  t.strictSame(down('192.0.2.3'), ['a.k.example.com.,b.k.example.com.', '192.0.2.2'])
  t.strictSame(down('192.0.2.2', '192.0.2.3'), ['a.k.example.com.', '192.0.2.2,192.0.2.3'])
  t.strictSame(down('192.0.2.1', '192.0.2.2', '192.0.2.3'), [
    'a.k.example.com.,b.k.example.com.',
    '192.0.2.2,192.0.2.3',
  ])
  t.end()
})

t.test('a name is reported while all its endpoints are down', (t) => {
  const { records, health, ignored } = zone()
  const [change] = added({
    endpoints: [
      'y.k.example.com CNAME A.k.example.com id=a weight=1',
      'y.k.example.com CNAME b.k.example.com id=b weight=1',
      'a.k.example.com A 192.0.2.1',
      'b.k.example.com A 192.0.2.2',
      'x.k.example.com A 192.0.2.1,192.0.2.3',
    ],
  })
  const table: [readonly string[], readonly string[], readonly string[]][] = [
    [[], [], []],
    // The CNAMEs lead to b then.
    [['192.0.2.1'], [], []],
    [['192.0.2.1', '192.0.2.3'], [`${X} A true`], [`${X} A`]],
    [['192.0.2.1', '192.0.2.2'], [`${Y} CNAME true`, `${X} A false`], [`${Y} CNAME`]],
    [[], [`${Y} CNAME false`], []],
  ]
  let before: StoredRecord | undefined
  for (const [down, want, all] of table) {
    health.put('n/app', down)
    records.apply([{ before, after: change!.after }])
    before = change!.after
    t.strictSame(ignored.splice(0).sort(), [...want].sort(), down.join())
    t.strictSame(
      records.out.allDown.map(({ set }) => set),
      all,
      down.join(),
    )
  }
  health.put('n/app', ['192.0.2.1', '192.0.2.3'])
  records.apply([{ before, after: before }])
  ignored.length = 0
  records.apply([{ before, after: undefined }])
  t.strictSame([ignored, records.out.allDown], [[`${X} A false`], []], 'the record is gone')
  t.end()
})

t.test('a change of health alone changes its RRsets, and an equal one nothing', (t) => {
  const { records, sink, health } = zone()
  const [change] = added({ endpoints: ['x.k.example.com A 192.0.2.1,192.0.2.2'] })
  const same = { before: change!.after, after: change!.after }
  records.apply([change!])
  health.put('n/app', ['192.0.2.1'])
  records.apply([same])
  t.strictSame(sink.targets(`${X} A`), ['192.0.2.2'])
  const { changes } = sink
  records.apply([same])
  t.equal(sink.changes, changes)
  health.put('n/app')
  records.apply([same])
  t.strictSame(sink.targets(`${X} A`), ['192.0.2.1', '192.0.2.2'])
  t.equal(records.recordCount, 1)
  t.end()
})

t.test('a record with many owners, by turns, has each endpoint at its own', (t) => {
  const { records, sink } = zone()
  const owners = Array.from({ length: 12 }, (_, i) => `o${i}.k.example.com`)
  const endpoints = ['1', '2'].flatMap((n) => owners.map((o) => `${o} A 192.0.2.${n} id=${n}`))
  const [change] = added({ endpoints })
  records.apply([change!])
  for (const owner of owners) {
    t.strictSame(sink.targets(`${owner}. A`), ['192.0.2.1', '192.0.2.2'], owner)
  }
  t.equal(records.recordCount, 1)
  t.ok(records.has(change!.after!))
  records.apply([{ before: change!.after, after: undefined }])
  t.equal(sink.sets.size, 1, 'except the NS')
  t.equal(records.recordCount, 0)
  t.end()
})

t.test('endpoints outside of the root host are served in the zone only', (t) => {
  const { records, sink, conflicts } = zone()
  const rootHost = 'app.k.example.com'
  const outside = ['b.example.net A 192.0.2.3', 'badk.example.com A 192.0.2.4']
  const [change] = added({
    rootHost,
    endpoints: [outside[0]!, 'app.k.example.com A 192.0.2.1', 'x.k.example.com A 192.0.2.2'],
  })
  records.apply([change!])
  t.strictSame([...sink.sets.keys()].sort(), [
    'app.k.example.com. A',
    'k.example.com. NS',
    'x.k.example.com. A',
  ])
  t.strictSame(conflicts, [
    'b.example.net. is outside of zone k.example.com.: the endpoint of n/app is not served; move it to a record of its zone',
  ])
  t.ok(records.conflicts.all()[0]?.isFault)
  t.ok(records.has(change!.after!))
  const [edited] = added({ rootHost, endpoints: [...outside, 'x.k.example.com A 192.0.2.2'] })
  records.apply([{ before: change!.after, after: edited!.after }])
  t.strictSame([...sink.sets.keys()].sort(), ['k.example.com. NS', 'x.k.example.com. A'])
  t.equal(records.conflicts.count, 2)
  const [other] = added({ name: 'b', rootHost, endpoints: [outside[0]!] })
  records.apply([other!])
  t.equal(records.conflicts.all().length, 3, 'one for each record')
  records.apply([
    { before: edited!.after, after: undefined },
    { before: other!.after, after: undefined },
  ])
  t.strictSame([...sink.sets.keys()], ['k.example.com. NS'])
  t.strictSame([records.conflicts.count, records.recordCount], [0, 0])
  t.end()
})

t.test('an equal record changes nothing', (t) => {
  const { records, sink } = zone()
  const before = record({ endpoints: ['x.k.example.com A 192.0.2.1'] })
  records.apply([{ before: undefined, after: before }])
  const { digest } = records
  const { changes } = sink
  records.apply([{ before, after: { ...before } }])
  t.strictSame([records.digest, sink.changes], [digest, changes])
  t.end()
})

t.test('a thousand records of one name go down and up within the time of a test', async (t) => {
  const health = new TestHealth()
  const { records, sink } = zone({}, health)
  const names = Array.from({ length: 1000 }, (_, i) => `r${i}`)
  const targets = names.map((_, i) => `10.0.${i >> 8}.${i & 255}`)
  const givens = names.map((name, i) => {
    const cname = 'x.k.example.com CNAME y.k.example.com id=one'
    return { name, endpoints: i === 0 ? [cname] : [`y.k.example.com A ${targets[i]}`] }
  })
  const changes = added(...givens)
  const again = changes.map(({ after }) => ({ before: after, after }))
  for (const [i, name] of names.entries()) health.put(`n/${name}`, [targets[i]!])
  records.apply(changes)
  t.equal(sink.targets('y.k.example.com. A')?.length, 999, 'all are down')
  health.put('n/r7', [])
  records.apply(again)
  t.strictSame(sink.targets('y.k.example.com. A'), ['10.0.0.7'])
})
