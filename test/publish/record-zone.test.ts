import fc from 'fast-check'
import t from 'tap'
import { printType, RRType } from '../../src/dns/iana/types.ts'
import { printName, scanName } from '../../src/dns/name/name.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import { packRecord } from '../../src/dnsrecord/pack.ts'
import type { RecordChange, StoredRecord } from '../../src/dnsrecord/record-source.ts'
import { validateResource } from '../../src/dnsrecord/validate/resource.ts'
import { HOLDERS_MAX } from '../../src/publish/owner-holders.ts'
import type { OwnerSet } from '../../src/publish/owner-sets.ts'
import { plan, printSet } from '../../src/publish/plan.ts'
import { RecordZone, type RRsetSink } from '../../src/publish/record-zone.ts'
import type { YamlValue } from '../../src/yaml/scan-block-yaml.ts'
import { TestHealth } from '../support/test-health.ts'

const APEX = scanName('k.example.com.')!

interface Given {
  readonly name?: string
  readonly created?: string
  readonly rootHost?: string
  readonly labels?: { readonly [key: string]: string }
  /** `owner TYPE target[,target] [key=value…]`; ttl, id, weight, geo, default. */
  readonly endpoints: readonly string[]
}

function texts(zone: RecordZone): string[] {
  return zone
    .conflicts()
    .map((conflict) => conflict.text)
    .sort()
}

function endpointOf(text: string): YamlValue {
  const [dnsName, recordType, targets, ...pairs] = text.split(' ')
  const options = new Map(pairs.map((p) => p.split('=') as [string, string]))
  const properties = [
    ['weight', 'weight'],
    ['geo', 'geo-code'],
    ['default', 'default'],
  ] as const
  return {
    dnsName: dnsName!,
    recordType: recordType!,
    targets: targets!.split(','),
    recordTTL: Number(options.get('ttl') ?? 60),
    setIdentifier: options.get('id') ?? '',
    providerSpecific: properties.flatMap(([key, name]) =>
      options.has(key) ? [{ name, value: options.get(key)!.replaceAll('+', ',') }] : [],
    ),
  }
}

function record(given: Given): StoredRecord {
  const got = validateResource({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: {
      name: given.name ?? 'app',
      namespace: 'n',
      labels: given.labels ?? {},
      ...(given.created === undefined ? {} : { creationTimestamp: given.created }),
    },
    spec: {
      rootHost: given.rootHost ?? 'k.example.com',
      endpoints: given.endpoints.map(endpointOf),
    },
  })
  if (got.kind !== 'record') throw new Error(JSON.stringify(got))
  return { key: `n/${got.record.name}`, packed: packRecord(got.record) }
}

/** What a sink was told, as a map from `owner TYPE`. */
class Served implements RRsetSink {
  readonly sets = new Map<string, OwnerSet>()
  changes = 0

  put(owner: Uint8Array, set: OwnerSet): void {
    this.changes++
    this.sets.set(`${printName(owner)} ${printType(set.type)}`, set)
  }

  remove(owner: Uint8Array, type: number): void {
    this.changes++
    if (!this.sets.delete(`${printName(owner)} ${printType(type)}`)) throw new Error('not there')
  }

  print(): Record<string, string> {
    const entries = [...this.sets].map(([key, set]) => [key, printSet(set)] as const)
    return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  targets(key: string): string[] | undefined {
    const set = this.sets.get(key)
    return set?.rdata.map((rdata) => printRdata(set.type, rdata))
  }
}

function zone(
  options: { apex?: Uint8Array; isLocalForm?: boolean } = {},
  health = new TestHealth(),
) {
  const sink = new Served()
  const conflicts: string[] = []
  const apex = options.apex ?? APEX
  const ns = { owner: apex, type: RRType.NS, ttlSeconds: 60, setIdentifier: '', weight: undefined }
  const records = new RecordZone({
    apex,
    isLocalForm: options.isLocalForm ?? false,
    fixed: [],
    defaultNs: { ...ns, codes: [], isDefault: false, rdata: [scanName('ns1.k.example.com.')!] },
    sink,
    health,
    onConflict: (text) => conflicts.push(text),
  })
  return { records, sink, conflicts, health }
}

const added = (...givens: Given[]): RecordChange[] =>
  givens.map((given) => ({ before: undefined, after: record(given) }))

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
    'k.example.com.: CNAME of n/c beside the SOA and the default NS: the CNAME is not served',
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
const CONFLICTS: readonly Conflict[] = [
  {
    name: 'the CNAME of an earlier record beats other types',
    given: [
      { name: 'b', endpoints: ['x.k.example.com A 192.0.2.1'] },
      { name: 'a', endpoints: ['x.k.example.com CNAME y.k.example.com'] },
    ],
    sets: { [`${X} CNAME`]: ['y.k.example.com.'], [`${X} A`]: undefined },
    warning: /CNAME of n\/a beside A of n\/b: the CNAME is served/,
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
    warning: /CNAME of n\/a beside A of n\/b: the CNAME is not served/,
  },
  {
    name: 'a CNAME at the apex is not served',
    given: [{ endpoints: ['k.example.com CNAME y.example.org'] }],
    sets: { 'k.example.com. CNAME': undefined },
    warning: /CNAME of n\/app beside/,
  },
  {
    name: 'the lowest TTL is served for all',
    given: [
      { name: 'a', endpoints: ['x.k.example.com A 192.0.2.1 ttl=300'] },
      { name: 'b', endpoints: ['x.k.example.com A 192.0.2.2 ttl=60'] },
    ],
    sets: { [`${X} A`]: ['192.0.2.1', '192.0.2.2'] },
    ttl: 60,
    warning: /TTL 300 in n\/a and 60 in n\/b: 60 is served/,
  },
  {
    name: 'of one set identifier with different content the first is served',
    given: [
      { name: 'a', endpoints: ['x.k.example.com A 192.0.2.1 id=eu weight=1'] },
      { name: 'b', endpoints: ['x.k.example.com A 192.0.2.2 id=eu weight=1'] },
    ],
    sets: { [`${X} A`]: ['192.0.2.1'] },
    warning: /set identifier "eu" differs between n\/a and n\/b: that of n\/a is served/,
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
      if (warning === undefined) t.strictSame(records.conflicts(), [], name)
      else t.match(conflicts[conflicts.length - 1], warning, name)
      t.equal(records.conflictCount, warning === undefined ? 0 : 1, name)
    }
  }
  t.end()
})

t.test('of one name the first 1 024 records count, in any order of arrival and removal', (t) => {
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
    t.equal(records.conflicts()[0]?.key, 'n/r1024')
    t.equal(records.recordCount, all.length)
    records.apply(all.slice(0, 40).map((before) => ({ before, after: undefined })))
    t.equal(sink.targets(`${X} A`)?.length, HOLDERS_MAX)
    t.equal(records.conflictCount, 0)
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

t.test('what is down is not served unless nothing else is there', (t) => {
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

t.test('the gateway-local form keeps names, addresses and metadata', (t) => {
  const { records, sink } = zone({ apex: scanName('kdrnt.')!, isLocalForm: true })
  records.apply(
    added({
      rootHost: 'h.k.example.com',
      endpoints: [
        'h.k.example.com CNAME klb.h.k.example.com ttl=300',
        'klb.h.k.example.com CNAME geo-na.klb.h.k.example.com id=GEO-NA geo=GEO-NA',
        'klb.h.k.example.com CNAME geo-na.klb.h.k.example.com id=default geo=*',
        'geo-na.klb.h.k.example.com CNAME c1.klb.h.k.example.com id=c1 weight=200',
        'geo-na.klb.h.k.example.com CNAME lb.example.org id=c2 weight=100',
        'c1.klb.h.k.example.com A 192.0.2.1,192.0.2.2',
      ],
    }),
  )
  t.strictSame(sink.targets('h.k.example.com.kdrnt. CNAME'), ['klb.h.k.example.com.kdrnt.'])
  t.strictSame(sink.targets('c1.klb.h.k.example.com.kdrnt. A'), ['192.0.2.1', '192.0.2.2'])
  t.strictSame(sink.targets('geo-na.klb.h.k.example.com.kdrnt. CNAME'), [
    'c1.klb.h.k.example.com.kdrnt.',
    'lb.example.org.kdrnt.',
  ])
  t.strictSame(sink.targets('w.h.k.example.com.kdrnt. TXT'), [
    '"200,geo-na.klb.h.k.example.com.kdrnt"',
    '"100,geo-na.klb.h.k.example.com.kdrnt"',
  ])
  t.strictSame(sink.targets('g.h.k.example.com.kdrnt. TXT'), [
    '"geo=GEO-NA" "type=continent" "default=true"',
  ])
  t.equal(sink.sets.get('w.h.k.example.com.kdrnt. TXT')?.ttlSeconds, 0)
  for (const set of sink.sets.values()) {
    t.notOk(set.candidates.some((c) => c.weight !== undefined || c.code !== undefined))
  }
  t.end()
})

t.test('the default is told of the code that it repeats, else as a code of its own', (t) => {
  const local = (...endpoints: string[]) => {
    const { records, sink } = zone({ apex: scanName('kdrnt.')!, isLocalForm: true })
    records.apply(added({ rootHost: 'h.k.example.com', endpoints }))
    return sink.targets('g.h.k.example.com.kdrnt. TXT')
  }
  const EU = 'h.k.example.com A 192.0.2.1 id=eu geo=GEO-EU'
  const IE = 'h.k.example.com A 192.0.2.2 id=ie geo=IE'
  const toldEu = (isDefault: boolean) => `"geo=GEO-EU" "type=continent" "default=${isDefault}"`
  const toldIe = '"geo=IE" "type=" "default=false"'
  t.strictSame(local(EU, IE, 'h.k.example.com A 192.0.2.1 id=default geo=*'), [
    toldEu(true),
    toldIe,
  ])
  t.strictSame(local(EU, IE, 'h.k.example.com A 192.0.2.3 id=default geo=*'), [
    toldEu(false),
    toldIe,
    '"geo=*" "type=" "default=true"',
  ])
  t.strictSame(local('h.k.example.com A 192.0.2.1 id=default geo=*'), [
    '"geo=*" "type=" "default=true"',
  ])
  t.end()
})

t.test('name servers have no gateway-local form, which would delegate the metadata away', (t) => {
  const { records, sink } = zone({ apex: scanName('kdrnt.')!, isLocalForm: true })
  records.apply(
    added({
      endpoints: [
        'k.example.com NS ns1.k.example.com',
        'ns1.k.example.com A 192.0.2.53',
        'k.example.com A 192.0.2.1 geo=IE',
      ],
    }),
  )
  t.equal(sink.targets('k.example.com.kdrnt. NS'), undefined)
  t.strictSame(sink.targets('k.example.com.kdrnt. A'), ['192.0.2.1'])
  t.strictSame(sink.targets('ns1.k.example.com.kdrnt. A'), ['192.0.2.53'])
  t.strictSame(sink.targets('g.k.example.com.kdrnt. TXT'), ['"geo=IE" "type=" "default=false"'])
  t.end()
})

t.test('the metadata of a wildcard is found under every name it was ever asked by', (t) => {
  const { records, sink } = zone({ apex: scanName('kdrnt.')!, isLocalForm: true })
  records.apply(
    added({
      rootHost: '*.k.example.com',
      endpoints: ['*.k.example.com A 192.0.2.1 weight=7 geo=IE'],
    }),
  )
  t.strictSame(sink.targets('*.k.example.com.kdrnt. A'), ['192.0.2.1'])
  for (const host of ['k.example.com', 'wildcard.k.example.com', 'wildcardk.example.com']) {
    t.strictSame(sink.targets(`w.${host}.kdrnt. TXT`), ['"7,*.k.example.com.kdrnt"'], host)
    t.strictSame(sink.targets(`g.${host}.kdrnt. TXT`), ['"geo=IE" "type=" "default=false"'], host)
  }
  t.end()
})

t.test('records in local form are served as they are, aggregates have none', (t) => {
  const { records, sink } = zone({ apex: scanName('kdrnt.')!, isLocalForm: true })
  records.apply(
    added(
      {
        name: 'local-app',
        labels: { 'kuadrant.io/coredns-zone-name': 'kdrnt', 'kuadrant.io/type': 'local' },
        rootHost: 'h.k.example.com.kdrnt',
        endpoints: [
          'h.k.example.com.kdrnt A 192.0.2.1',
          'g.h.k.example.com.kdrnt TXT geo=IE,type=,default=true',
        ],
      },
      {
        name: 'merged-app',
        labels: { 'kuadrant.io/type': 'merged' },
        endpoints: ['m.k.example.com A 192.0.2.9'],
      },
    ),
  )
  t.strictSame(sink.targets('h.k.example.com.kdrnt. A'), ['192.0.2.1'])
  t.strictSame(sink.targets('g.h.k.example.com.kdrnt. TXT'), ['"geo=IE" "type=" "default=true"'])
  t.equal(sink.targets('m.k.example.com.kdrnt. A'), undefined)
  t.equal(records.recordCount, 1)
  t.end()
})

const ENDPOINT = fc
  .tuple(
    fc.constantFrom('k.example.com ', 'a.k.example.com ', 'b.k.example.com ', '*.b.k.example.com '),
    fc.constantFrom(
      'A 192.0.2.1',
      'A 192.0.2.2',
      'A 192.0.2.1,192.0.2.3',
      'AAAA 2001:db8::1',
      'CNAME c.example.org',
      'CNAME d.example.org',
      'NS ns.example.org',
      'TXT t',
    ),
    fc.constantFrom('', ' id=x', ' id=y'),
    fc.constantFrom('', ' weight=0', ' weight=9', ' geo=IE', ' geo=IE+GEO-NA', ' geo=*'),
    fc.constantFrom('', ' ttl=300'),
  )
  .map((parts) => parts.join(''))
const RECORD = fc.record({
  endpoints: fc.array(ENDPOINT, { maxLength: 4 }),
  created: fc.constantFrom('2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'),
})
/** An edit of a record (undefined = it is removed; 'same' = it stays), and its health after that. */
const EDIT = fc.record({
  name: fc.constantFrom('r1', 'r2', 'r3', 'r4'),
  record: fc.oneof(
    { weight: 4, arbitrary: RECORD },
    { weight: 1, arbitrary: fc.constantFrom(undefined, 'same' as const) },
  ),
  down: fc.constantFrom([], [], ['192.0.2.1'], ['192.0.2.1', '192.0.2.2']),
  slowStart: fc.constantFrom([], [], [{ address: '192.0.2.2', units: 3 }]),
})

t.test('after any edits a zone is what it would be if built at once, and so is its digest', (t) => {
  const property = fc.property(
    fc.array(fc.array(EDIT, { maxLength: 3 }), { maxLength: 8 }),
    (batches) => {
      const edited = zone()
      const present = new Map<string, StoredRecord>()
      for (const batch of batches) {
        const changes = new Map<string, RecordChange>()
        for (const { name, record: to, down, slowStart } of batch) {
          if (changes.has(name)) continue
          const before = present.get(name)
          const after = to === 'same' ? before : to && record({ ...to, name })
          edited.health.put(`n/${name}`, down)
          edited.health.slowStarts.set(`n/${name}`, slowStart)
          changes.set(name, { before, after })
          if (after === undefined) present.delete(name)
          else present.set(name, after)
        }
        edited.records.apply([...changes.values()].filter((c) => c.before ?? c.after))
      }
      const fresh = zone({}, edited.health)
      fresh.records.apply([...present.values()].map((after) => ({ before: undefined, after })))
      t.strictSame(edited.sink.print(), fresh.sink.print())
      t.equal(edited.records.digest, fresh.records.digest)
      t.equal(edited.records.recordCount, fresh.records.recordCount)
      t.equal(edited.records.rrsetCount, edited.sink.sets.size)
      t.strictSame(texts(edited.records), texts(fresh.records))
      return t.passing()
    },
  )
  fc.assert(property, { seed: 7, numRuns: 200 })
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
  t.equal(sink.sets.size, 1, 'but for the NS')
  t.equal(records.recordCount, 0)
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

t.test('applying a plan to what is there gives what is wanted', (t) => {
  const sets = (endpoints: readonly string[]): OwnerSet[] => {
    const { records, sink } = zone()
    records.apply(added({ endpoints: endpoints.map((e) => e.replace(/^\S+/, 'a.k.example.com')) }))
    return [...sink.sets].filter(([key]) => key.startsWith('a.')).map(([, set]) => set)
  }
  const list = fc.array(ENDPOINT, { maxLength: 4 })
  const property = fc.property(list, list, (from, to) => {
    const served = new Map(sets(from).map((set) => [set.type, printSet(set)]))
    for (const change of plan(APEX, sets(from), sets(to))) {
      if (change.kind === 'put') served.set(change.set.type, printSet(change.set))
      else served.delete(change.type)
    }
    const want = new Map(sets(to).map((set) => [set.type, printSet(set)]))
    return (
      JSON.stringify([...served].sort()) === JSON.stringify([...want].sort()) &&
      plan(APEX, sets(to), sets(to)).length === 0
    )
  })
  fc.assert(property, { seed: 3, numRuns: 200 })
  t.end()
})
