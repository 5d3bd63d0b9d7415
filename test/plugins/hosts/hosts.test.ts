import { mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { runWhole } from '../../../src/base/slices.ts'
import { RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { hosts } from '../../../src/plugins/hosts/setup.ts'
import { HostsTable } from '../../../src/plugins/hosts/table.ts'
import { backdate } from '../../support/backdate.ts'
import { FakeTimers, followerOf, SetUp, setupError } from '../../support/setup.ts'
import { answering, type Question, show, transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'
import { wire } from '../../support/zone-text.ts'

const NEXT = answering((tx) => {
  tx.response.answeredBy = 'next'
  return 0
})

const FILE = `
# comment
192.0.2.1   www.example.org WWW2.example.org. # more
192.0.2.2   www.example.org
192.0.2.1   www.example.org
2001:db8::1 www.example.org
::ffff:192.0.2.3 mapped.example.org
fe80::1%eth0 local.example.org
192.0.2.4   outside.example.net
nonsense    bad.example.org
192.0.2.5   *.apps.example.org
192.0.2.6   one.apps.example.org a..b
192.0.2.7
`

function setUp(t: Test, properties = '', file: string | undefined = FILE) {
  const dir = t.testdir(file === undefined ? {} : { hosts: file })
  backdate(dir)
  const timers = new FakeTimers()
  const c = new SetUp(hosts, `hosts ${join(dir, 'hosts')} {\n${properties}\n}`, undefined, {
    timers,
  })
  t.teardown(() => c.stop())
  return { c, dir, timers }
}

/** `who STATUS rdata...` */
async function ask(c: SetUp, question: Question): Promise<string> {
  const tx = transaction(question)
  const shown = await show(c.handler(NEXT), tx)
  const data = shown.answer.map((line) => line.split(' ')[4])
  return [tx.response.answeredBy, shown.status.split(' ')[0], ...data].join(' ').trim()
}

const A = RRType.A
const cases: { name: string; given: Question; want: string }[] = [
  {
    name: 'all addresses of a name, each once',
    given: { name: 'www.example.org.' },
    want: 'hosts NOERROR c0000201 c0000202',
  },
  { name: 'an alias', given: { name: 'www2.example.org.' }, want: 'hosts NOERROR c0000201' },
  {
    name: 'IPv6',
    given: { name: 'www.example.org.', type: RRType.AAAA },
    want: 'hosts NOERROR 20010db8000000000000000000000001',
  },
  {
    name: 'an address with a zone',
    given: { name: 'local.example.org.', type: RRType.AAAA },
    want: 'hosts NOERROR fe800000000000000000000000000001',
  },
  {
    name: 'a mapped address is IPv4',
    given: { name: 'mapped.example.org.', type: A },
    want: 'hosts NOERROR c0000203',
  },
  {
    name: 'NODATA for the other family',
    given: { name: 'www2.example.org.', type: RRType.AAAA },
    want: 'hosts NOERROR',
  },
  {
    name: 'NODATA for types that hosts can not have',
    given: { name: 'www.example.org.', type: RRType.MX },
    want: 'hosts NOERROR',
  },
  { name: 'SERVFAIL for an unknown name', given: { name: 'x.example.org.' }, want: 'SERVFAIL' },
  { name: 'a line without an address', given: { name: 'bad.example.org.' }, want: 'SERVFAIL' },
  {
    name: 'another zone goes on',
    given: { name: 'outside.example.net.' },
    want: 'next NOERROR',
  },
  {
    name: 'another class goes on',
    given: { name: 'www.example.org.', class: RRClass.CH },
    want: 'next NOERROR',
  },
  {
    name: 'a wildcard',
    given: { name: 'two.apps.example.org.' },
    want: 'hosts NOERROR c0000205',
  },
  {
    name: 'a line of its own goes before a wildcard',
    given: { name: 'one.apps.example.org.' },
    want: 'hosts NOERROR c0000206',
  },
  {
    name: 'a line of its own hides the wildcard for the other family too',
    given: { name: 'one.apps.example.org.', type: RRType.AAAA },
    want: 'hosts NOERROR',
  },
  {
    name: 'a wildcard is not for two labels',
    given: { name: 'a.two.apps.example.org.' },
    want: 'SERVFAIL',
  },
  { name: 'nor for none', given: { name: 'apps.example.org.' }, want: 'SERVFAIL' },
  {
    name: 'PTR, whatever the zones',
    given: { name: '2.2.0.192.in-addr.arpa.', type: RRType.PTR },
    want: 'hosts NOERROR 03777777076578616d706c65036f726700',
  },
  {
    name: 'PTR of IPv6',
    given: {
      name: '1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.',
      type: RRType.PTR,
    },
    want: 'hosts NOERROR 03777777076578616d706c65036f726700',
  },
  {
    name: 'no PTR for a wildcard: next',
    given: { name: '5.2.0.192.in-addr.arpa.', type: RRType.PTR },
    want: 'next NOERROR',
  },
]

for (const { name, given, want } of cases) {
  test(`hosts: ${name}`, async (t) => {
    const { c } = setUp(t)
    await c.start()
    t.equal(await ask(c, given), want)
  })
}

test('hosts: fallthrough is for unknown names in its zones', async (t) => {
  const { c } = setUp(t, 'fallthrough sub.example.org')
  await c.start()
  t.equal(await ask(c, { name: 'x.sub.example.org.' }), 'next NOERROR')
  t.equal(await ask(c, { name: 'x.example.org.' }), 'SERVFAIL')
  t.equal(await ask(c, { name: 'www.example.org.', type: RRType.TXT }), 'hosts NOERROR')
})

test('hosts: fallthrough_unsupported is for other types of known names', async (t) => {
  const { c } = setUp(t, 'fallthrough\nfallthrough_unsupported')
  await c.start()
  t.equal(await ask(c, { name: 'www.example.org.', type: RRType.TXT }), 'next NOERROR')
  t.equal(await ask(c, { name: 'www2.example.org.', type: RRType.AAAA }), 'hosts NOERROR')
})

test('hosts: ttl and no_reverse', async (t) => {
  const { c } = setUp(t, 'ttl 7\nno_reverse')
  await c.start()
  const shown = await show(c.handler(NEXT), transaction({ name: 'www2.example.org.' }))
  t.same(shown.answer, ['www2.example.org. 7 IN A c0000201'])
  t.equal(shown.flags, 'aa')
  const reverse = { name: '2.2.0.192.in-addr.arpa.', type: RRType.PTR }
  t.equal(await ask(c, reverse), 'next NOERROR')
})

test('hosts: inline lines hold beside the file, and without it', async (t) => {
  const { c } = setUp(t, '192.0.2.9 www2.example.org in.example.org\nwrong line')
  await c.start()
  t.equal(await ask(c, { name: 'www2.example.org.' }), 'hosts NOERROR c0000201 c0000209')
  t.match(c.lines, [/WARNING.*ignored "wrong line": it does not start with an address/])
  const dir = t.testdir({})
  const alone = new SetUp(hosts, `hosts ${dir}/none {\n 192.0.2.9 in.example.org\n}`)
  t.teardown(() => alone.stop())
  await alone.start()
  t.equal(await ask(alone, { name: 'in.example.org.' }), 'hosts NOERROR c0000209')
  t.match(alone.lines, [`[WARNING] plugin/hosts: File does not exist: ${dir}/none`])
})

test('hosts: a changed file is read again, a vanished one leaves what it said', async (t) => {
  const { c, dir, timers } = setUp(t)
  await c.start()
  c.lines.length = 0
  c.block.debug = true
  writeFileSync(join(dir, 'hosts'), '192.0.2.99 www.example.org\n')
  await timers.advance(5000)
  await until(() => c.lines.length > 0, 'the log')
  t.match(c.lines, [/DEBUG.*Parsed hosts file into 2 entries/])
  t.equal(await ask(c, { name: 'www.example.org.' }), 'hosts NOERROR c0000263')
  rmSync(join(dir, 'hosts'))
  await timers.advance(5000)
  t.equal(await ask(c, { name: 'www.example.org.' }), 'hosts NOERROR c0000263')
  t.equal(await c.metric(`coredns_hosts_entries{hostsfile="${join(dir, 'hosts')}"}`), 2)
  t.ok((await c.metric('coredns_hosts_reload_timestamp_seconds'))! > 1e9)
})

test('hosts: a directory is no hosts file', async (t) => {
  const { c, dir } = setUp(t)
  rmSync(join(dir, 'hosts'))
  mkdirSync(join(dir, 'hosts'))
  await c.start()
  t.match(c.lines, [/WARNING.*Hosts file ".*" is a directory/])
})

test('hosts: reload 0s watches nothing', async (t) => {
  const { c, timers } = setUp(t, 'reload 0s')
  await c.start()
  t.equal(timers.count, 0)
})

test('hosts: an address with a great many names has a hundred PTR records', async (t) => {
  const table = new HostsTable({ zones: [wire('.')], ttlSeconds: 1, reverse: true })
  const lines = Array.from({ length: 20_000 }, (_, i) => `0.0.0.0 ad${i}.example.org`)
  runWhole(table.addText(Buffer.from(lines.join('\n'))))
  t.equal(table.records.recordCount, 20_100)
})

test('hosts: any octets are read to an end', async (t) => {
  const table = new HostsTable({ zones: [wire('.')], ttlSeconds: 1, reverse: true })
  const octets = Buffer.from(Array.from({ length: 5000 }, (_, i) => (i * 7919) & 255))
  runWhole(table.addText(octets))
  runWhole(table.addText(Buffer.alloc(200_000, 'x')))
  t.equal(table.records.recordCount, 0)
})

const bad: { name: string; given: string; want: RegExp }[] = [
  { name: 'twice in a block', given: 'hosts a\nhosts b', want: /only be used once/ },
  { name: 'a bad zone', given: 'hosts f a..b', want: /not a valid domain name/ },
  { name: 'ttl without a number', given: 'hosts {\n ttl\n}', want: /ttl needs a time in second/ },
  { name: 'ttl with a unit', given: 'hosts {\n ttl 1m\n}', want: /ttl needs a number of second/ },
  { name: 'ttl 0', given: 'hosts {\n ttl 0\n}', want: /ttl provided is invalid/ },
  { name: 'ttl beyond 65535', given: 'hosts {\n ttl 65536\n}', want: /ttl provided is invalid/ },
  { name: 'reload without a time', given: 'hosts {\n reload\n}', want: /reload needs a duration/ },
  { name: 'a bad reload', given: 'hosts {\n reload x\n}', want: /invalid duration for reload 'x'/ },
  {
    name: 'a line behind fallthrough',
    given: 'hosts {\n fallthrough\n 192.0.2.1 a\n}',
    want: /unknown property '192\.0\.2\.1'/,
  },
  {
    name: 'fallthrough_unsupported alone',
    given: 'hosts {\n fallthrough_unsupported\n}',
    want: /fallthrough_unsupported requires fallthrough/,
  },
]

for (const { name, given, want } of bad) {
  test(`hosts: ${name} is refused`, async (t) => {
    t.match(setupError(hosts, given), want)
  })
}

test('hosts: a fault of ours in a reload costs that reload alone', async (t) => {
  const { c, dir, timers } = setUp(t)
  await c.start()
  const { monotonic } = c.clock
  c.clock.monotonic = () => {
    throw new Error('boom')
  }
  writeFileSync(join(dir, 'hosts'), '192.0.2.99 www.example.org')
  await timers.advance(15_000)
  const errors = c.lines.filter((line) => line.startsWith('[ERROR]'))
  t.match(errors, [/plugin\/hosts: Reloading .*hosts failed, the last valid state is kept: boom/])
  t.equal(errors.length, 1)
  const addresses = async () =>
    (await show(c.handler(NEXT), transaction({ name: 'www.example.org.' }))).answer.length
  t.equal(await addresses(), 2, 'the last good version')
  c.clock.monotonic = monotonic
  await timers.advance(5000)
  await until(async () => (await addresses()) === 1, 'the new version')
})

test('hosts: lines that do not begin with an address are logged, and check reports them', async (t) => {
  const file = '# a comment\n\n192.0.2.2 www.example.org\nwww2.example.org 192.0.2.3\n||ads^\n'
  const { c, dir } = setUp(t, '', file)
  await c.start()
  const line = `${join(dir, 'hosts')}:4: ignored, does not start with an address, and 1 more`
  t.strictSame(c.lines, [`[WARNING] plugin/hosts: ${line}`])
  t.match((await c.check()).warnings, [line])
})

test('hosts: a line or a file that is too long is logged', async (t) => {
  const long = `192.0.2.1 ${'a '.repeat(40_000)}`
  const file = `${long}\n192.0.2.2 www.example.org\n${long}\n${long}`
  const { c, dir, timers } = setUp(t, '', file)
  await c.start()
  const path = join(dir, 'hosts')
  t.strictSame(c.lines.splice(0), [
    `[WARNING] plugin/hosts: ${path}:1: ignored, longer than 65536 octets, and 2 more`,
  ])
  const answers = async () =>
    (await show(c.handler(NEXT), transaction({ name: 'www.example.org.' }))).answer.length
  t.equal(await answers(), 1, 'the others are served')
  truncateSync(path, 256 * 1024 * 1024 + 1)
  await timers.advance(20_000)
  t.strictSame(c.lines.splice(0), [
    `[WARNING] plugin/hosts: unable to access hosts file: ${path} is larger than 268435456 octets`,
  ])
  t.equal(await answers(), 1, 'the last good version')
  const late = new SetUp(hosts, `hosts ${path}`, undefined, { timers })
  t.teardown(() => late.stop())
  await late.start()
  t.match(late.lines, [/unable to access hosts file: .* is larger than/], 'from the start, too')
})

test('data threads follow', async (t) => {
  const { c, dir, timers } = setUp(t, '198.51.100.1 inline.example.org\n reload 1s')
  const corefile = `hosts ${join(dir, 'hosts')} {\n 198.51.100.1 inline.example.org\n}`
  const follower = followerOf(c, hosts, corefile)
  t.equal(await ask(follower, { name: 'www.example.org.' }), 'next NOERROR')
  await c.start()
  const questions: Question[] = [
    { name: 'www.example.org.' },
    { name: 'www.example.org.', type: RRType.AAAA },
    { name: 'inline.example.org.' },
    { name: 'x.apps.example.org.' },
    { name: '1.2.0.192.in-addr.arpa.', type: RRType.PTR },
    { name: 'no.example.org.' },
    { name: 'www.example.org.', type: RRType.TXT },
  ]
  for (const question of questions) {
    t.equal(await ask(follower, question), await ask(c, question), JSON.stringify(question))
  }
  writeFileSync(join(dir, 'hosts'), '192.0.2.99 www.example.org\n')
  await timers.advance(1000)
  const want = 'hosts NOERROR c0000263'
  await until(async () => (await ask(follower, questions[0]!)) === want, want)
  for (const question of questions) {
    t.equal(await ask(follower, question), await ask(c, question), JSON.stringify(question))
  }
})
