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
  TXT,
  unusualQueries,
} from '../support/query-cases.ts'
import { kuadrant } from './transports-kuadrant.ts'
import { type Case, COMMON, ZONE } from './transports-stage.ts'

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
