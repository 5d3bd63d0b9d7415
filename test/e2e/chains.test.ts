import t from 'tap'
import { ask } from '../support/dig.ts'
import { needs } from '../support/peer.ts'
import { startServer } from '../support/server.ts'

const APEX = '@ 60 SOA ns host 1 7200 1800 86400 30\n@ 60 NS ns\nns 60 A 192.0.2.53\n'

const PARENT = `${APEX}
a         60 A     192.0.2.1
host      60 CNAME host.child
top       60 CNAME child
nope      60 CNAME nope.child
two       60 CNAME host
under     60 DNAME child
back      60 CNAME back.child
far       60 CNAME far.child
loop      60 CNAME loop.child
; Not served here.
away      60 NS    ns.away
ns.away   60 A     192.0.2.55
toaway    60 CNAME x.away
; Served, with and without a delegation, and below a wildcard.
child     60 NS    ns.child
ns.child  60 A     192.0.2.54
tobare    60 CNAME host.bare
*.wild    60 A     192.0.2.77
towild    60 CNAME host.k.wild
tosame    60 CNAME host.same
steered   60 CNAME www.k
k         60 NS    ns.child
toauto    60 CNAME host.auto
broken    60 CNAME host.broken.zone
broken.zone 60 NS  ns.child
other     60 CNAME x.sub.example.net.
`

const CHILD = `${APEX}
@    60 A     192.0.2.8
host 60 A     192.0.2.9
back 60 CNAME a.example.org.
far  60 CNAME www.example.net.
loop 60 CNAME loop.example.org.
`

const NET = `${APEX}
www 60 A  198.51.100.1
sub 60 NS ns.sub
ns.sub 60 A 192.0.2.60
`

const record = (name: string, type: string, target: string) => `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: {name: ${name}, namespace: gateways}
spec:
  rootHost: ${name}.k.example.org
  endpoints:
  - {dnsName: ${name}.k.example.org, recordType: ${type}, recordTTL: 60, targets: [${target}]}
`

const COREFILE = `
example.org:{PORT} {
    bind 127.0.0.1
    file db.parent
    file db.child same.example.org
}
child.example.org:{PORT} bare.example.org:{PORT} k.wild.example.org:{PORT} {
    bind 127.0.0.1
    file db.child
}
auto.example.org:{PORT} {
    bind 127.0.0.1
    auto {
        directory zones
    }
}
broken.zone.example.org:{PORT} {
    bind 127.0.0.1
    file db.missing
}
k.example.org:{PORT} {
    bind 127.0.0.1
    kuadrant {
        manifests records
    }
}
example.net:{PORT} {
    bind 127.0.0.1
    file db.net
}
`

const HOST = 'host.example.org. 60 IN CNAME host.child.example.org.'
const HOST_A = 'host.child.example.org. 60 IN A 192.0.2.9'
const NS = ['example.org. 60 IN NS ns.example.org.']

interface Row {
  readonly ask: string
  readonly status?: string
  readonly answer: readonly string[]
  readonly authority?: readonly string[]
  readonly additional?: readonly string[]
}

const TABLE: readonly Row[] = [
  { ask: 'host A', answer: [HOST_A, HOST] },
  { ask: 'host CNAME', answer: [HOST] },
  {
    ask: 'top A',
    answer: [
      'child.example.org. 60 IN A 192.0.2.8',
      'top.example.org. 60 IN CNAME child.example.org.',
    ],
  },
  {
    ask: 'top DS',
    answer: ['top.example.org. 60 IN CNAME child.example.org.'],
    authority: ['example.org. 30 IN SOA ns.example.org. host.example.org. 1 7200 1800 86400 30'],
  },
  {
    ask: 'nope A',
    status: 'NXDOMAIN',
    answer: ['nope.example.org. 60 IN CNAME nope.child.example.org.'],
    authority: [
      'child.example.org. 30 IN SOA ns.child.example.org. host.child.example.org. 1 7200 1800 86400 30',
    ],
  },
  {
    ask: 'host TXT',
    answer: [HOST],
    authority: [
      'child.example.org. 30 IN SOA ns.child.example.org. host.child.example.org. 1 7200 1800 86400 30',
    ],
  },
  { ask: 'two A', answer: [HOST_A, HOST, 'two.example.org. 60 IN CNAME host.example.org.'] },
  {
    ask: 'host.under A',
    answer: [
      HOST_A,
      'host.under.example.org. 60 IN CNAME host.child.example.org.',
      'under.example.org. 60 IN DNAME child.example.org.',
    ],
  },
  {
    ask: 'host.under CNAME',
    answer: [
      'host.under.example.org. 60 IN CNAME host.child.example.org.',
      'under.example.org. 60 IN DNAME child.example.org.',
    ],
  },
  {
    ask: 'back A',
    answer: [
      'a.example.org. 60 IN A 192.0.2.1',
      'back.child.example.org. 60 IN CNAME a.example.org.',
      'back.example.org. 60 IN CNAME back.child.example.org.',
    ],
  },
  {
    ask: 'far A',
    answer: [
      'far.child.example.org. 60 IN CNAME www.example.net.',
      'far.example.org. 60 IN CNAME far.child.example.org.',
      'www.example.net. 60 IN A 198.51.100.1',
    ],
  },
  {
    ask: 'loop A',
    answer: [
      'loop.child.example.org. 60 IN CNAME loop.example.org.',
      'loop.example.org. 60 IN CNAME loop.child.example.org.',
    ],
  },
  {
    ask: 'toaway A',
    answer: ['toaway.example.org. 60 IN CNAME x.away.example.org.'],
    authority: ['away.example.org. 60 IN NS ns.away.example.org.'],
    additional: ['ns.away.example.org. 60 IN A 192.0.2.55'],
  },
  {
    ask: 'tobare A',
    answer: [
      'tobare.example.org. 60 IN CNAME host.bare.example.org.',
      'host.bare.example.org. 60 IN A 192.0.2.9',
    ],
  },
  {
    ask: 'towild A',
    answer: [
      'host.k.wild.example.org. 60 IN A 192.0.2.9',
      'towild.example.org. 60 IN CNAME host.k.wild.example.org.',
    ],
  },
  {
    ask: 'tosame A',
    answer: [
      'host.same.example.org. 60 IN A 192.0.2.9',
      'tosame.example.org. 60 IN CNAME host.same.example.org.',
    ],
  },
  {
    ask: 'steered A',
    answer: [
      'steered.example.org. 60 IN CNAME www.k.example.org.',
      'www.k.example.org. 60 IN A 203.0.113.5',
    ],
  },
  {
    ask: 'toauto A',
    answer: [
      'toauto.example.org. 60 IN CNAME host.auto.example.org.',
      'host.auto.example.org. 60 IN A 192.0.2.9',
    ],
  },
  {
    ask: 'broken A',
    status: 'SERVFAIL',
    answer: ['broken.example.org. 60 IN CNAME host.broken.zone.example.org.'],
  },
  {
    ask: 'other A',
    answer: ['other.example.org. 60 IN CNAME x.sub.example.net.'],
    authority: ['sub.example.net. 60 IN NS ns.sub.example.net.'],
    additional: ['ns.sub.example.net. 60 IN A 192.0.2.60'],
  },
  {
    ask: 'up.k A',
    answer: [HOST_A, HOST, 'up.k.example.org. 60 IN CNAME host.example.org.'],
    authority: [],
  },
]

t.test('chains: CNAMEs are followed into every zone of the server', needs('dig'), async (t) => {
  const { port } = await startServer(t, {
    corefile: COREFILE,
    files: {
      'db.parent': PARENT,
      'db.child': CHILD,
      'db.net': NET,
      'zones/db.auto.example.org': CHILD,
      'records/www.yaml': record('www', 'A', '203.0.113.5'),
      'records/up.yaml': record('up', 'CNAME', 'host.example.org'),
    },
  })
  for (const row of TABLE) {
    const [name, type = 'A'] = row.ask.split(' ')
    const reply = await ask('dig', port, ['+noedns', `${name}.example.org`, type])
    const want = {
      status: row.status ?? 'NOERROR',
      flags: ['qr', 'aa'],
      answer: [...row.answer].sort(),
      authority: row.authority ?? NS,
      additional: row.additional ?? [],
    }
    t.match(reply, want, row.ask)
    t.equal(reply.answer.length, want.answer.length, `${row.ask}: no more answers`)
    t.equal(reply.authority.length, want.authority.length, `${row.ask}: no more authority`)
  }
})
