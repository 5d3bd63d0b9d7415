import t from 'tap'
import { scanName } from '../../src/dns/name/name.ts'
import { added, zone } from './record-zone-stage.ts'

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

t.test('the default is a flag of the code that it repeats, else a code of its own', (t) => {
  const local = (...endpoints: string[]) => {
    const { records, sink } = zone({ apex: scanName('kdrnt.')!, isLocalForm: true })
    records.apply(added({ rootHost: 'h.k.example.com', endpoints }))
    return sink.targets('g.h.k.example.com.kdrnt. TXT')
  }
  const EU = 'h.k.example.com A 192.0.2.1 id=eu geo=GEO-EU'
  const IE = 'h.k.example.com A 192.0.2.2 id=ie geo=IE'
  const geoEu = (isDefault: boolean) => `"geo=GEO-EU" "type=continent" "default=${isDefault}"`
  const geoIe = '"geo=IE" "type=" "default=false"'
  t.strictSame(local(EU, IE, 'h.k.example.com A 192.0.2.1 id=default geo=*'), [geoEu(true), geoIe])
  t.strictSame(local(EU, IE, 'h.k.example.com A 192.0.2.3 id=default geo=*'), [
    geoEu(false),
    geoIe,
    '"geo=*" "type=" "default=true"',
  ])
  t.strictSame(local('h.k.example.com A 192.0.2.1 id=default geo=*'), [
    '"geo=*" "type=" "default=true"',
  ])
  t.end()
})

t.test('a record with names outside of its root host has no gateway-local form', (t) => {
  const { records, sink } = zone({ apex: scanName('kdrnt.')!, isLocalForm: true })
  const inside = 'h.k.example.com A 192.0.2.1'
  const rootHost = 'h.k.example.com'
  const changes = added({ rootHost, endpoints: [inside, 'x.k.example.com A 192.0.2.2'] })
  records.apply(changes)
  t.equal(sink.sets.size, 1, 'only the NS')
  const [corrected] = added({ rootHost, endpoints: [inside] })
  records.apply([{ before: changes[0]!.after, after: corrected!.after }])
  t.strictSame(sink.targets('h.k.example.com.kdrnt. A'), ['192.0.2.1'])
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
