import t, { type Test } from 'tap'
import { ask, type Client, type Reply } from '../support/dig.ts'
import { needs } from '../support/peer.ts'
import { type RunningServer, startServer } from '../support/server.ts'

const BIG_ADDRESSES = 200

const ZONE = `
$ORIGIN z.example.
$TTL 300
@            IN SOA   ns1 hostmaster 7 7200 1800 86400 60
             IN NS    ns1
             IN A     192.0.2.80
             IN MX    10 mail
ns1          IN A     192.0.2.53
mail         IN A     192.0.2.25
mail         IN AAAA  2001:db8::25
www          IN CNAME web
web          IN A     192.0.2.1
web          IN A     192.0.2.2
away         IN CNAME www.y.example.
out          IN CNAME elsewhere.test.
loop1        IN CNAME loop2
loop2        IN CNAME loop1
c1           IN CNAME c2
c2           IN CNAME c3
c3           IN CNAME c4
c4           IN CNAME web
dead         IN CNAME nowhere
*.wild       IN A     192.0.2.99
*.wild       IN TXT   "any name"
real.wild    IN MX    5 mail
a.b.ent      IN A     192.0.2.7
sub          IN NS    ns.sub
sub          IN NS    ns.other.test.
sub          IN DS    12345 13 2 AABBCCDDEEFF00112233445566778899AABBCCDDEEFF00112233445566778899
ns.sub       IN A     192.0.2.54
old          IN DNAME new
www.new      IN A     192.0.2.11
_sip._udp    IN SRV   1 2 5060 mail
svc          IN HTTPS 1 web alpn=h2,h3 ipv4hint=192.0.2.1
caa          IN CAA   0 issue "ca.example"
txt          IN TXT   "one" "two words" "q\\"uote"
odd          IN TYPE65400 \\# 3 0a0b0c
${Array.from({ length: BIG_ADDRESSES }, (_, i) => `big IN A 198.51.100.${i}`).join('\n')}
`

const OTHER = `
$ORIGIN y.example.
@   300 IN SOA ns1.z.example. hostmaster.z.example. 1 7200 1800 86400 60
    300 IN NS  ns1.z.example.
www 300 IN A   203.0.113.9
`

const COREFILE = `
z.example:{PORT} {
    bind 127.0.0.1
    errors
    file db.z.example
}
y.example:{PORT} {
    bind 127.0.0.1
    errors
    file db.y.example
}
`

interface Row {
  readonly name: string
  readonly ask: readonly string[]
  readonly status?: string
  readonly aa?: boolean
  readonly answer?: readonly string[]
  /** `owner TYPE` of each record of the authority section. */
  readonly authority?: readonly string[]
  readonly additional?: readonly string[]
}

const SOA = ['z.example. SOA']
const TABLE: readonly Row[] = [
  {
    name: 'an address',
    ask: ['mail.z.example', 'A'],
    answer: ['mail.z.example. 300 IN A 192.0.2.25'],
  },
  {
    name: 'the case of the question is kept',
    ask: ['MaIl.Z.example', 'A'],
    answer: ['MaIl.Z.example. 300 IN A 192.0.2.25'],
  },
  { name: 'the apex', ask: ['z.example', 'A'], answer: ['z.example. 300 IN A 192.0.2.80'] },
  {
    name: 'SOA at the apex',
    ask: ['z.example', 'SOA'],
    answer: ['z.example. 300 IN SOA ns1.z.example. hostmaster.z.example. 7 7200 1800 86400 60'],
  },
  {
    name: 'MX with the addresses of its target',
    ask: ['z.example', 'MX'],
    answer: ['z.example. 300 IN MX 10 mail.z.example.'],
    additional: ['mail.z.example. 300 IN A 192.0.2.25', 'mail.z.example. 300 IN AAAA 2001:db8::25'],
  },
  { name: 'NODATA has the SOA', ask: ['mail.z.example', 'TXT'], answer: [], authority: SOA },
  {
    name: 'NXDOMAIN has the SOA',
    ask: ['nope.z.example', 'A'],
    status: 'NXDOMAIN',
    answer: [],
    authority: SOA,
  },
  {
    name: 'a chain inside the zone',
    ask: ['www.z.example', 'A'],
    answer: [
      'web.z.example. 300 IN A 192.0.2.1',
      'web.z.example. 300 IN A 192.0.2.2',
      'www.z.example. 300 IN CNAME web.z.example.',
    ],
  },
  {
    name: 'CNAME asked for is not chased',
    ask: ['www.z.example', 'CNAME'],
    answer: ['www.z.example. 300 IN CNAME web.z.example.'],
  },
  {
    name: 'a chain into another block',
    ask: ['away.z.example', 'A'],
    answer: ['away.z.example. 300 IN CNAME www.y.example.', 'www.y.example. 300 IN A 203.0.113.9'],
  },
  {
    name: 'a chain of four steps',
    ask: ['c1.z.example', 'TXT'],
    answer: [
      'c1.z.example. 300 IN CNAME c2.z.example.',
      'c2.z.example. 300 IN CNAME c3.z.example.',
      'c3.z.example. 300 IN CNAME c4.z.example.',
      'c4.z.example. 300 IN CNAME web.z.example.',
    ],
    authority: SOA,
  },
  {
    name: 'a chain to a name that does not exist',
    ask: ['dead.z.example', 'A'],
    status: 'NXDOMAIN',
    answer: ['dead.z.example. 300 IN CNAME nowhere.z.example.'],
    authority: SOA,
  },
  {
    name: 'a wildcard',
    ask: ['any.wild.z.example', 'A'],
    answer: ['any.wild.z.example. 300 IN A 192.0.2.99'],
  },
  {
    name: 'a wildcard several labels up',
    ask: ['a.b.c.wild.z.example', 'A'],
    answer: ['a.b.c.wild.z.example. 300 IN A 192.0.2.99'],
  },
  {
    name: 'an existing name hides the wildcard',
    ask: ['real.wild.z.example', 'A'],
    answer: [],
    authority: SOA,
  },
  {
    name: 'below an existing name the wildcard is hidden too',
    ask: ['x.real.wild.z.example', 'A'],
    status: 'NXDOMAIN',
    answer: [],
    authority: SOA,
  },
  {
    name: 'an empty non-terminal is NODATA',
    ask: ['b.ent.z.example', 'A'],
    answer: [],
    authority: SOA,
  },
  {
    name: 'a referral with glue',
    ask: ['host.sub.z.example', 'A'],
    aa: false,
    answer: [],
    authority: ['sub.z.example. NS', 'sub.z.example. NS'],
    additional: ['ns.sub.z.example. 300 IN A 192.0.2.54'],
  },
  {
    name: 'DS is the parent side of the cut',
    ask: ['sub.z.example', 'DS'],
    answer: [
      'sub.z.example. 300 IN DS 12345 13 2 AABBCCDDEEFF00112233445566778899AABBCCDDEEFF001122334455 66778899',
    ],
  },
  {
    name: 'DNAME synthesises a CNAME',
    ask: ['www.old.z.example', 'A'],
    answer: [
      'old.z.example. 300 IN DNAME new.z.example.',
      'www.new.z.example. 300 IN A 192.0.2.11',
      'www.old.z.example. 300 IN CNAME www.new.z.example.',
    ],
  },
  {
    name: 'SRV',
    ask: ['_sip._udp.z.example', 'SRV'],
    answer: ['_sip._udp.z.example. 300 IN SRV 1 2 5060 mail.z.example.'],
  },
  {
    name: 'CAA',
    ask: ['caa.z.example', 'CAA'],
    answer: ['caa.z.example. 300 IN CAA 0 issue "ca.example"'],
  },
  {
    name: 'TXT with several strings',
    ask: ['txt.z.example', 'TXT'],
    answer: ['txt.z.example. 300 IN TXT "one" "two words" "q\\"uote"'],
  },
  {
    name: 'an unknown type',
    ask: ['odd.z.example', 'TYPE65400'],
    answer: ['odd.z.example. 300 IN TYPE65400 \\# 3 0A0B0C'],
  },
  {
    name: 'a name of no zone is refused',
    ask: ['example.net', 'A'],
    status: 'REFUSED',
    aa: false,
    answer: [],
  },
]

function check(t: Test, row: Row, reply: Reply): void {
  t.equal(reply.status, row.status ?? 'NOERROR', 'status', { reply: reply.text })
  t.equal(reply.flags.includes('aa'), row.aa ?? true, 'AA')
  if (row.answer) t.strictSame(reply.answer, [...row.answer].sort(), 'answer')
  const kinds = reply.authority.map((line) => line.replace(/^(\S+) \d+ IN (\S+) .*/, '$1 $2'))
  if (row.authority) t.strictSame(kinds, row.authority, 'authority')
  for (const want of row.additional ?? []) t.ok(reply.additional.includes(want), want)
}

t.test('a zone file, asked with dig, kdig and drill', needs('dig', 'kdig', 'drill'), async (t) => {
  const files = { 'db.z.example': ZONE, 'db.y.example': OTHER }
  const server = await startServer(t, { corefile: COREFILE, files })
  for (const row of TABLE) {
    await t.test(row.name, async (t) => check(t, row, await ask('dig', server.port, row.ask)))
  }
  await t.test('over TCP it is the same', async (t) => {
    for (const row of TABLE) check(t, row, await ask('dig', server.port, ['+tcp', ...row.ask]))
  })
  for (const client of ['kdig', 'drill'] as const) {
    await t.test(`${client} reads the same`, async (t) => sameFor(t, client, server))
  }
  await t.test('a loop ends', async (t) => {
    const reply = await ask('dig', server.port, ['loop1.z.example', 'A'])
    t.ok(['NOERROR', 'SERVFAIL'].includes(reply.status), reply.status)
    t.ok(reply.answer.length <= 9, 'no more than the bound of the chain')
  })
  await t.test('a chain out of our zones ends with the CNAME', async (t) => {
    const reply = await ask('dig', server.port, ['out.z.example', 'A'])
    t.match(reply.answer, ['out.z.example. 300 IN CNAME elsewhere.test.'])
  })
  await t.test('big answers are cut over UDP and whole over TCP', async (t) =>
    bigAnswers(t, server),
  )
})

async function sameFor(t: Test, client: Client, server: RunningServer): Promise<void> {
  for (const row of TABLE.filter((row) => !row.name.includes('unknown type'))) {
    const reply = await ask(client, server.port, row.ask)
    t.equal(reply.status, row.status ?? 'NOERROR', `${row.name}: status`, { reply: reply.text })
    t.equal(reply.answer.length, row.answer?.length, `${row.name}: records`, { reply: reply.text })
  }
}

async function bigAnswers(t: Test, server: RunningServer): Promise<void> {
  const big = (...options: string[]) => ask('dig', server.port, [...options, 'big.z.example', 'A'])
  const cut = await big('+ignore')
  t.ok(cut.flags.includes('tc'), 'TC over UDP')
  t.equal((await big('+tcp')).answer.length, BIG_ADDRESSES, 'whole over TCP')
  t.equal((await big()).answer.length, BIG_ADDRESSES, 'dig goes on to TCP by itself')
  const small = await ask('dig', server.port, ['+noedns', '+ignore', 'big.z.example', 'A'])
  const octets = Number(/MSG SIZE +rcvd: (\d+)/.exec(small.text)?.[1])
  t.ok(octets <= 512, `${octets} octets without EDNS`)
}
