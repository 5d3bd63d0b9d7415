import { cityEntry, composeMmdb } from '../support/mmdb.ts'
import {
  A,
  AAAA,
  ask,
  CHAOS,
  CNAME,
  NS,
  SOA,
  subnet,
  TXT,
  unusualQueries,
} from '../support/query-cases.ts'
import { type Case, COMMON, ZONE } from './transports-stage.ts'

const MMDB = composeMmdb({
  networks: {
    '81.2.69.0/24': cityEntry('GB', 'EU', ['ENG']),
    '8.8.0.0/16': cityEntry('US', 'NA', ['CA']),
    '2001:db8:a::/48': cityEntry('DE', 'EU'),
  },
})

/** Endpoints of one name: [set, target, geo code, default, weight]. */
type Endpoint = readonly [string, string, string?, boolean?, number?]

function record(name: string, type: string, endpoints: readonly Endpoint[]): string {
  return JSON.stringify({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: `${name.split('.')[0]}-${type.toLowerCase()}`, namespace: 'default' },
    spec: {
      rootHost: name,
      endpoints: endpoints.map(([setIdentifier, target, code, isDefault, weight]) => ({
        dnsName: name,
        recordType: type,
        recordTTL: 60,
        setIdentifier,
        targets: target.split(' '),
        providerSpecific: [
          ...(code ? [{ name: 'geo-code', value: code }] : []),
          ...(isDefault ? [{ name: 'default', value: 'true' }] : []),
          ...(weight === undefined ? [] : [{ name: 'weight', value: String(weight) }]),
        ],
      })),
    },
  })
}

const MANIFESTS = {
  'records/app.json': record('app.k.example.com', 'A', [
    ['eu-1', '192.0.2.1', 'GEO-EU', true, 200],
    ['eu-2', '192.0.2.2', 'GEO-EU', true, 100],
    ['us', '198.51.100.1', 'US', false, 120],
    ['ca', '198.51.100.2', 'US-CA', false, 120],
    ['office', '203.0.113.1', 'NET-OFFICE'],
  ]),
  'records/even.json': record('even.k.example.com', 'CNAME', [
    ['a', 'one.k.example.com', '', false, 50],
    ['b', 'two.k.example.com', '', false, 50],
  ]),
  'records/one.json': record('one.k.example.com', 'A', [['x', '192.0.2.9']]),
  'records/two.json': record('two.k.example.com', 'A', [['x', '192.0.2.10']]),
  'records/wild.json': record('*.w.k.example.com', 'A', [['x', '192.0.2.11']]),
  'records/out.json': record('out.k.example.com', 'CNAME', [['x', 'www.example.org']]),
}

const GB = subnet(1, 24, [81, 2, 69])
const US = subnet(1, 24, [8, 8, 4])
const OFFICE = subnet(1, 24, [203, 0, 113])
const GERMANY = subnet(2, 56, [0x20, 1, 0xd, 0xb8, 0, 0xa, 0])
const NOWHERE = subnet(1, 24, [192, 88, 99])

export const kuadrant: Case = {
  name: 'kuadrant, geoip, metadata, view, log of metadata',
  corefile: `k.example.com:{PORT} {
    ${COMMON}
    errors
    log . "{name} {type} {/geoip/country/code} {/geoip/city/name} {/log/type} {rcode} {rsize}"
    metadata
    geoip geo.mmdb {
        edns-subnet
        net 203.0.113.0/24 NET-OFFICE
        net 127.0.0.0/8 IE
    }
    prometheus 127.0.0.1:{HTTP}
    kuadrant {
        manifests records
        serials serials.json
        nameserver ns1.k.example.com 192.0.2.53
    }
}
kdrnt:{PORT} {
    ${COMMON}
    errors
    log
    prometheus 127.0.0.1:{HTTP}
    kuadrant {
        manifests records
        serials serials.json
        fallthrough none.kdrnt
    }
}
example.org:{PORT} {
    ${COMMON}
    log
    metadata
    geoip geo.mmdb {
        edns-subnet
    }
    view europe {
        expr metadata('geoip/continent/code') == 'EU'
    }
    prometheus 127.0.0.1:{HTTP}
    file zones/db.example.org
}
example.org:{PORT} {
    ${COMMON}
    log
    view tcp-or-b {
        expr proto() == 'tcp' || name() startsWith 'b' && bufsize() > 512
    }
    prometheus 127.0.0.1:{HTTP}
    whoami
}
example.org:{PORT} {
    ${COMMON}
    chaos its-default nobody
}
`,
  files: { 'geo.mmdb': MMDB, 'zones/db.example.org': ZONE, ...MANIFESTS },
  asks: [
    ask('app.k.example.com', A, { draws: 400 }),
    ...[GB, US, OFFICE, GERMANY, NOWHERE].map((edns) => {
      return ask('app.k.example.com', A, { edns, draws: 400 })
    }),
    ask('app.k.example.com', A, { edns: subnet(1, 8, [8]), draws: 400 }),
    ask('app.k.example.com', AAAA, { edns: GB }),
    ask('even.k.example.com', A, { edns: US, draws: 400 }),
    ask('even.k.example.com', CNAME, { edns: US, draws: 400 }),
    ask('one.k.example.com', A, { edns: GB }),
    ask('x.y.w.k.example.com', A, { edns: GB }),
    ask('w.k.example.com', A, { edns: GB }),
    ask('out.k.example.com', A, { edns: GB }),
    ask('out.k.example.com', A, { edns: US }),
    ask('no.k.example.com', A, { edns: GB }),
    ask('k.example.com', SOA),
    ask('k.example.com', NS),
    ask('g.app.k.example.com.kdrnt', TXT),
    ask('w.app.k.example.com.kdrnt', TXT),
    ask('app.k.example.com.kdrnt', A),
    ask('no.kdrnt', A),
    ask('no.none.kdrnt', A),
    ask('www.example.org', A, { edns: GB }),
    ask('www.example.org', A, { edns: GERMANY }),
    ask('www.example.org', A, { edns: US }),
    ask('b.example.org', A, { edns: US }),
    ask('b.example.org', A),
    ask('version.bind', TXT, { rrclass: CHAOS }),
    ...unusualQueries('one.k.example.com'),
  ],
  metrics: true,
  shows: [
    [/app\.k\.example\.com\. A GB City in GB NOERROR NOERROR/, 'log'],
    [/view="europe"/, 'metrics'],
    [/view="tcp-or-b"/, 'metrics'],
    [/sextant_kuadrant/, 'metrics'],
  ],
}
