import { cityEntry, composeMmdb } from '../support/mmdb.ts'
import {
  A,
  AAAA,
  ANY,
  AXFR,
  ask,
  CHAOS,
  CNAME,
  DS,
  EDNS,
  MX,
  NS,
  PTR,
  SOA,
  SRV,
  subnet,
  TXT,
  unusualQueries,
} from '../support/query-cases.ts'
import type { Ask } from '../support/transcript.ts'

/** One Corefile, and questions that show what its directives do. */
export interface Case {
  readonly name: string
  /** `{PORT}` and `{HTTP}` stand for ports. */
  readonly corefile: string
  readonly files?: Readonly<Record<string, string | Uint8Array>>
  readonly asks: readonly Ask[]
  /** Names for queries that are damaged at random. */
  readonly damaged?: readonly string[]
  /** Compare the metrics of {HTTP}. */
  readonly metrics?: boolean
  /** Paths of {HTTP} to compare. */
  readonly pages?: readonly string[]
  /** What must be seen, or the case shows nothing. */
  readonly shows?: readonly (readonly [RegExp, 'log' | 'metrics'])[]
}

const COMMON = 'bind 127.0.0.1\n multisocket 2'

const LONG_TEXT = Array.from({ length: 12 }, (_, i) => `"${`part ${i} `.repeat(20)}"`).join(' ')

const ZONE = `$ORIGIN example.org.
$TTL 1h
@ IN SOA ns1 hostmaster 7 2h 15m 2w 5m
 IN NS ns1
 IN NS ns2
 IN MX 10 mail
ns1 IN A 192.0.2.1
 IN AAAA 2001:db8::1
ns2 IN A 192.0.2.2
mail IN A 192.0.2.25
www 300 IN A 192.0.2.80
 300 IN A 192.0.2.81
 IN AAAA 2001:db8::80
three IN A 192.0.2.91
 IN A 192.0.2.92
 IN A 192.0.2.93
ftp IN CNAME www
loop IN CNAME loop2
loop2 IN CNAME loop
*.apps IN CNAME www
dname IN DNAME www
_sip._tcp IN SRV 0 5 5060 www
partner IN CNAME www.example.net.
gone IN CNAME no.example.net.
broken IN CNAME www.missing.example.
abroad IN CNAME www.elsewhere.invalid.
long IN TXT ${LONG_TEXT}
sub IN NS ns.sub
ns.sub IN A 192.0.2.53
`

const OTHER_ZONE = `$TTL 1h
@ IN SOA ns1.example.org. hostmaster.example.org. 3 2h 15m 2w 5m
 IN NS ns1.example.org.
www IN A 198.51.100.80
`

const ZONE_ASKS = [
  ask('www.example.org'),
  ask('www.example.org', AAAA),
  ask('www.example.org', MX),
  ask('example.org', MX),
  ask('example.org', NS),
  ask('example.org', SOA),
  ask('example.org', A),
  ask('no.example.org'),
  ask('ftp.example.org'),
  ask('ftp.example.org', CNAME),
  ask('loop.example.org'),
  ask('x.apps.example.org'),
  ask('apps.example.org'),
  ask('x.dname.example.org'),
  ask('_sip._tcp.example.org', SRV),
  ask('x.sub.example.org'),
  ask('sub.example.org', NS),
  ask('sub.example.org', DS),
  ask('partner.example.org'),
  ask('gone.example.org'),
  ask('broken.example.org'),
  ask('abroad.example.org'),
  ask('long.example.org', TXT),
  ask('long.example.org', TXT, { edns: { payload: 4096 } }),
  ask('www.example.org', ANY),
  ask('example.org', AXFR),
]

const file: Case = {
  name: 'file, root, errors, log, debug, nsid, bufsize, prometheus, reload',
  corefile: `example.org:{PORT} {
    ${COMMON}
    root zones
    debug
    errors
    log
    nsid here we are
    bufsize 700
    prometheus 127.0.0.1:{HTTP}
    reload 1h 1s
    file db.example.org
}
example.net:{PORT} missing.example:{PORT} {
    ${COMMON}
    errors
    log . {combined} {
        class denial error
    }
    prometheus 127.0.0.1:{HTTP}
    file zones/db.example.net example.net {
        fallthrough
    }
    file zones/none missing.example
    whoami
}
`,
  files: { 'zones/db.example.org': ZONE, 'zones/db.example.net': OTHER_ZONE },
  asks: [
    ...ZONE_ASKS,
    ask('www.example.net'),
    ask('no.example.net'),
    ask('www.missing.example'),
    ask('missing.example', SOA),
    ...unusualQueries('www.example.org'),
  ],
  damaged: ['www.example.org', 'no.example.net', 'missing.example', 'example.com'],
  metrics: true,
  shows: [
    [/plugin\/errors: 2 www\.missing\.example\. A: the zone is not loaded/, 'log'],
    [/"A IN www\.example\.org\. udp 33 false 512" NOERROR/, 'log'],
    [/responses_total\{.*plugin="file"/, 'metrics'],
    [/responses_total\{server="dns:[^"]*",zone="dropped"/, 'metrics'],
    [/^sextant_dns_ignored_packets_total [1-9]/m, 'metrics'],
  ],
}

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

const kuadrant: Case = {
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

const small: Case = {
  name: 'whoami, acl, header, local, chaos, any, nsid of the host, cookies',
  corefile: `.:{PORT} {
    ${COMMON}
    errors
    log
    prometheus 127.0.0.1:{HTTP}
    local
    any
    chaos Sextant-1 first@example.org second@example.org
    nsid
    acl blocked.example {
        block type A AAAA net 127.0.0.0/8
        allow
    }
    acl filtered.example {
        filter
    }
    acl dropped.example {
        drop net 127.0.0.1
    }
    header {
        query clear rd
        response set ra
        response clear aa
    }
    whoami
}
`,
  asks: [
    ask('www.example.org'),
    ask('www.example.org', ANY),
    ask('x.blocked.example'),
    ask('x.blocked.example', TXT),
    ask('x.filtered.example'),
    ask('x.dropped.example'),
    ask('x.dropped.example', AAAA, { edns: EDNS }),
    ask('localhost'),
    ask('localhost', AAAA),
    ask('localhost', SOA),
    ask('localhost', TXT),
    ask('localhost.example.org'),
    ask('1.0.0.127.in-addr.arpa', PTR),
    ask('2.0.0.127.in-addr.arpa', PTR),
    ask('0.in-addr.arpa', NS),
    ...[
      'version.bind',
      'version.server',
      'hostname.bind',
      'id.server',
      'authors.bind',
      'no.bind',
    ].map((name) => ask(name, TXT, { rrclass: CHAOS, draws: 400 })),
    ...unusualQueries('odd.example.org'),
  ],
  damaged: ['www.example.org', 'x.blocked.example', 'x.dropped.example', 'localhost'],
  metrics: true,
  shows: [
    [/coredns_acl_blocked_requests_total\{.*zone="blocked\.example\."/, 'metrics'],
    [/coredns_acl_filtered_requests_total/, 'metrics'],
    [/coredns_acl_dropped_requests_total/, 'metrics'],
    [/coredns_acl_allowed_requests_total/, 'metrics'],
    [/coredns_local_localhost_requests_total/, 'metrics'],
    [/x\.dropped\.example\..* - - /, 'log'],
  ],
}

const balanced: Case = {
  name: 'hosts, auto, loadbalance, minimal',
  corefile: `example.org:{PORT} {
    ${COMMON}
    errors
    log
    prometheus 127.0.0.1:{HTTP}
    loadbalance
    auto {
        directory zones
    }
}
weighted.example:{PORT} {
    ${COMMON}
    prometheus 127.0.0.1:{HTTP}
    loadbalance weighted weights {
        prefer 192.0.2.0/24
    }
    file zones/db.weighted.example
}
preferred.example:{PORT} {
    ${COMMON}
    minimal
    prometheus 127.0.0.1:{HTTP}
    loadbalance round_robin {
        prefer 198.51.100.0/24 2001:db8::/32
    }
    auto {
        directory zones
        fallthrough
    }
    whoami
}
hosts.example:{PORT} in-addr.arpa:{PORT} {
    ${COMMON}
    debug
    errors
    log
    prometheus 127.0.0.1:{HTTP}
    hosts hosts.txt hosts.example in-addr.arpa {
        203.0.113.9 inline.hosts.example
        ttl 77
        fallthrough in-addr.arpa
        fallthrough_unsupported
    }
    whoami
}
`,
  files: {
    'zones/db.example.org': ZONE,
    'zones/db.bad.example': 'this is no zone\n',
    'zones/db.weighted.example': `@ 60 IN SOA a b 1 2 3 4 5\n@ IN NS a\n
www 60 IN A 198.51.100.1\nwww IN A 198.51.100.2\nwww IN A 192.0.2.3\n`,
    'zones/db.preferred.example': `@ 60 IN SOA a b 1 2 3 4 5\n@ IN NS a\na 60 IN A 192.0.2.1
www 60 IN A 198.51.100.1\nwww IN A 192.0.2.2\n@ 60 IN MX 1 www\n`,
    weights: 'www.weighted.example\n198.51.100.1 3\n198.51.100.2 1\n',
    'hosts.txt': `192.0.2.10 router.hosts.example router\n2001:db8::10 router.hosts.example
192.0.2.11 *.wild.hosts.example\n192.0.2.12 other.example\n`,
  },
  asks: [
    ask('three.example.org', A, { draws: 400 }),
    ask('www.example.org', A, { draws: 400 }),
    ask('_sip._tcp.example.org', SRV, { draws: 400 }),
    ask('example.org', NS, { draws: 400 }),
    ask('www.bad.example'),
    ask('www.weighted.example', A, { draws: 400 }),
    ask('www.preferred.example', A, { draws: 60 }),
    ask('preferred.example', MX),
    ask('preferred.example', MX, { edns: EDNS }),
    ask('no.preferred.example'),
    ask('router.hosts.example'),
    ask('router.hosts.example', AAAA),
    ask('router.hosts.example', TXT),
    ask('ROUTER.hosts.example', A, { what: 'upper case' }),
    ask('inline.hosts.example'),
    ask('x.wild.hosts.example'),
    ask('no.hosts.example'),
    ask('10.2.0.192.in-addr.arpa', PTR),
    ask('12.2.0.192.in-addr.arpa', PTR),
    ask('99.2.0.192.in-addr.arpa', PTR),
    ask('other.example'),
    ...unusualQueries('router.hosts.example'),
  ],
  metrics: true,
  shows: [
    [/no such host, and no fallthrough/, 'log'],
    [/coredns_hosts_entries/, 'metrics'],
  ],
}

const addresses: Case = {
  name: 'bind, timeouts, ready, health, view by address',
  corefile: `example.org:{PORT} {
    bind 127.0.0.1 ::1
    multisocket 2
    log
    prometheus 127.0.0.1:{HTTP}
    ready 127.0.0.1:{HTTP}
    health 127.0.0.1:{HTTP}
    timeouts {
        idle 30s
    }
    view to-v6 {
        expr server_ip() == '[::1]'
    }
    whoami
}
example.org:{PORT} {
    bind 127.0.0.1 ::1
    multisocket 2
    log
    chaos four
    prometheus 127.0.0.1:{HTTP}
    view from-here {
        expr incidr(client_ip(), '127.0.0.1/32') && type() in ['A', 'TXT'] && id() != 99
    }
    file zones/db.example.org
}
example.org:{PORT} {
    bind 127.0.0.2
    multisocket 1
    log
    prometheus 127.0.0.1:{HTTP}
    whoami
}
`,
  files: { 'zones/db.example.org': ZONE },
  asks: ['127.0.0.1', '127.0.0.2', '::1'].flatMap((to) => [
    ask('www.example.org', A, { to, what: `A from ${to}` }),
    ask('www.example.org', A, { to, id: 99, what: `id 99 from ${to}` }),
    ask('www.example.org', MX, { to, what: `MX from ${to}` }),
    ask('version.bind', TXT, { to, rrclass: CHAOS, what: `version from ${to}` }),
    ...unusualQueries('www.example.org').map((odd) => ({
      ...odd,
      to,
      what: `${odd.what} from ${to}`,
    })),
  ]),
  metrics: true,
  pages: ['/ready', '/health'],
  shows: [
    [/server="dns:\/\/\[::1\]:\d+",.*family="2"/, 'metrics'],
    [/server="dns:\/\/127\.0\.0\.2:\d+"/, 'metrics'],
    [/view="to-v6"/, 'metrics'],
  ],
}

const consolidated: Case = {
  name: 'errors with consolidate',
  corefile: `missing.example:{PORT} {
    ${COMMON}
    errors {
        consolidate 1h "is not loaded$" warning show_first
        consolidate 1h "^no such" info
        stacktrace
    }
    hosts none hosts.missing.example {
        192.0.2.1 a.hosts.missing.example
    }
    file none
}
`,
  // All errors of the first rule are alike: which thread's error comes first is a matter of chance.
  asks: [1, 2, 3, 4].flatMap(() =>
    ['missing.example', 'missing.example', 'hosts.missing.example'].map((name) => ask(name, A)),
  ),
  shows: [
    [/\[WARNING\] plugin\/errors: 8 errors like 'is not loaded\$' occurred in last 1h0m0s/, 'log'],
    [/\[WARNING\] plugin\/errors: 2 missing\.example\. A: the zone is not loaded/, 'log'],
    [/\[INFO\] plugin\/errors: 4 errors like '\^no such' occurred in last 1h0m0s/, 'log'],
  ],
}

export const CASES: readonly Case[] = [file, kuadrant, small, balanced, addresses, consolidated]
