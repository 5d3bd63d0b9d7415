import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { collectProblems } from '../../../src/base/telemetry/problems.ts'
import { RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { file } from '../../../src/plugins/file/setup.ts'
import { backdate } from '../../support/backdate.ts'
import { FakeTimers, SetUp, setupError } from '../../support/setup.ts'
import { answering, type Question, show, transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'

function zone(serial: number, address = '192.0.2.1'): string {
  return `@ 60 SOA ns host ${serial} 2 3 4 5\n@ 60 NS ns.invalid.\nwww 60 A ${address}\n`
}

const NEXT = answering((tx) => {
  tx.response.answeredBy = 'next'
  return 0
})

/** The directive over a directory with `files`, not yet started. */
function setUp(t: Test, corefile: string, files: Record<string, string>, zones = ['example.org.']) {
  const dir = t.testdir(files)
  backdate(dir)
  const timers = new FakeTimers()
  const c = new SetUp(file, corefile.replaceAll('DIR', dir), zones, { timers })
  t.teardown(() => c.stop())
  return { c, dir, timers }
}

async function ask(c: SetUp, question: Question, next = NEXT) {
  return show(c.handler(next), transaction(question))
}

const WWW = { name: 'www.example.org.' }

test('file: answers from the zone, with the NS of its apex', async (t) => {
  const { c } = setUp(t, 'file DIR/db', { db: zone(1) })
  await c.start()
  const shown = await ask(c, WWW)
  t.same(shown.answer, ['www.example.org. 60 IN A c0000201'])
  t.match(shown.authority, [/^example\.org\. 60 IN NS/])
  t.equal(shown.status, 'NOERROR')
  t.equal(shown.flags, 'aa')
})

test('file: under minimal it does not add what that takes away', async (t) => {
  const dir = t.testdir({ db: zone(1) })
  backdate(dir)
  const c = new SetUp(file, `file ${dir}/db`, ['example.org.'], { above: ['minimal'] })
  t.teardown(() => c.stop())
  await c.start()
  const shown = await ask(c, WWW)
  t.same(shown.answer, ['www.example.org. 60 IN A c0000201'])
  t.same(shown.authority, [])
})

test('file: names outside of its zones go on, or are refused at the end of the chain', async (t) => {
  const { c } = setUp(t, 'file DIR/db', { db: zone(1) })
  await c.start()
  const tx = transaction({ name: 'www.example.com.' })
  await show(c.handler(NEXT), tx)
  t.equal(tx.response.answeredBy, 'next')
  const alone = await show(c.handler(), transaction({ name: 'www.example.com.' }))
  t.match(alone.status, /^REFUSED/)
})

for (const type of [RRType.AXFR, RRType.IXFR]) {
  test(`file: type ${type} is refused`, async (t) => {
    const { c } = setUp(t, 'file DIR/db', { db: zone(1) })
    await c.start()
    t.match((await ask(c, { name: 'example.org.', type })).status, /^REFUSED/)
  })
}

test('file: other classes are not answered', async (t) => {
  const { c } = setUp(t, 'file DIR/db', { db: zone(1) })
  await c.start()
  const shown = await show(c.handler(), transaction({ ...WWW, class: RRClass.CH }))
  t.match(shown.status, /^REFUSED/)
})

test('file: falls through only for the zones of fallthrough, and only for names that do not exist', async (t) => {
  const corefile = 'file DIR/db {\n fallthrough sub.example.org\n }'
  const { c } = setUp(t, corefile, { db: `${zone(1)}gone 60 CNAME nowhere.sub\n` })
  await c.start()
  const servedBy = async (question: Question) => {
    const tx = transaction(question)
    const shown = await show(c.handler(NEXT), tx)
    return `${tx.response.answeredBy} ${shown.status} ${shown.authority.length}`
  }
  t.equal(await servedBy({ name: 'x.sub.example.org.' }), 'next NOERROR 0')
  t.equal(await servedBy({ name: 'x.example.org.' }), 'file NXDOMAIN 1')
  t.equal(await servedBy({ name: 'www.example.org.', type: RRType.TXT }), 'file NOERROR 1')
})

test('file: several zones out of one file, the longest answers', async (t) => {
  const { c } = setUp(t, 'file DIR/db example.org sub.example.org example.net', { db: zone(1) })
  await c.start()
  for (const name of ['www.example.org.', 'www.sub.example.org.', 'www.example.net.']) {
    t.match((await ask(c, { name })).answer, [new RegExp(`^${name} 60 IN A`)])
  }
  t.match((await ask(c, { name: 'example.org.', type: RRType.DS })).authority, [/^example\.org\./])
  const ds = await ask(c, { name: 'sub.example.org.', type: RRType.DS })
  t.match(ds.authority, [/^example\.org\. .* SOA/], 'DS is asked of the parent')
})

test('file: reloads when the serial differs, be it lower', async (t) => {
  const { c, dir, timers } = setUp(t, 'file DIR/db {\n reload 10s\n }', { db: zone(7) })
  await c.start()
  writeFileSync(join(dir, 'db'), zone(3, '192.0.2.33'))
  t.match((await ask(c, WWW)).answer, [/c0000201$/])
  await timers.advance(10_000)
  await until(() => c.lines.length > 0, 'the log')
  t.match((await ask(c, WWW)).answer, [/c0000221$/])
  const [line] = c.lines
  t.equal(
    line,
    `[INFO] plugin/file: Successfully reloaded zone "example.org." in "${join(dir, 'db')}" with 3 SOA serial`,
  )
})

test('file: a change without a new serial is not taken, unless by time', async (t) => {
  for (const [property, want] of [
    ['upstream', /c0000201$/],
    ['reload_by_mtime', /c0000202$/],
  ] as const) {
    const { c, dir, timers } = setUp(t, `file DIR/db {\n ${property}\n }`, { db: zone(7) })
    await c.start()
    writeFileSync(join(dir, 'db'), `${zone(7, '192.0.2.2')}; longer\n`)
    await timers.advance(60_000)
    await until(() => c.lines.length > 0, 'the log')
    t.match((await ask(c, WWW)).answer, [want])
  }
})

test('file: other content with the same serial is a problem, until the serial differs', async (t) => {
  const { c, dir, timers } = setUp(t, 'file DIR/db', { db: zone(7) })
  await c.start()
  const path = join(dir, 'db')
  const change = async (text: string): Promise<readonly string[]> => {
    c.lines.length = 0
    writeFileSync(path, text)
    await timers.advance(60_000)
    await until(() => c.lines.length > 0, 'the log')
    return collectProblems(c.problemReports).listed.map(
      ({ place, reason }) => `${place}: ${reason}`,
    )
  }
  const want = `${path}:1: zone example.org.: the file has another size, but the same SOA serial; raise the serial; serial 7 is still served`
  t.strictSame(await change(`${zone(7)}new 60 A 192.0.2.3\n`), [want])
  t.strictSame(await change(zone(7)), [], 'the served content again')
  t.strictSame(await change(`${zone(7)}new 60 A 192.0.2.3\n`), [want])
  t.strictSame(await change(`${zone(8)}new 60 A 192.0.2.3\n`), [])
})

test('file: a bad new version keeps the last good one, and says why once', async (t) => {
  const { c, dir, timers } = setUp(t, 'file DIR/db', { db: zone(7) })
  await c.start()
  writeFileSync(join(dir, 'db'), `${zone(8)}www 60 CNAME x\n`)
  await timers.advance(180_000)
  await until(() => c.lines.length > 0, 'the log')
  t.match((await ask(c, WWW)).answer, [/c0000201$/])
  t.equal(c.lines.length, 1, c.lines.join('\n'))
  t.match(
    c.lines[0],
    /ERROR.*Parsing zone "example\.org\.": .*db:4: .*CNAME.*still serving serial 7/,
  )
  writeFileSync(join(dir, 'db'), zone(9, '192.0.2.9'))
  await timers.advance(60_000)
  await until(() => c.lines.length > 1, 'the log')
  t.match((await ask(c, WWW)).answer, [/c0000209$/])
})

test('file: a file that vanishes leaves its zone, with an error in the log', async (t) => {
  const { c, dir, timers } = setUp(t, 'file DIR/db', { db: zone(7) })
  await c.start()
  rmSync(join(dir, 'db'))
  await timers.advance(60_000)
  await until(() => c.lines.length > 0, 'the log')
  t.match(c.lines, [/ERROR.*Failed to open zone "example\.org\." in ".*db": open .*no such file/])
  t.match((await ask(c, WWW)).answer, [/c0000201$/])
})

test('file: a file that is missing at the start is waited for', async (t) => {
  const { c, dir, timers } = setUp(t, 'file DIR/db', {})
  await c.start()
  t.match(c.lines, [
    /WARNING.*Failed to open "open .*no such file or directory": trying again in 1m0s/,
  ])
  t.match((await ask(c, WWW)).status, /^SERVFAIL/)
  writeFileSync(join(dir, 'db'), zone(1))
  await timers.advance(60_000)
  await until(() => c.lines.length > 1, 'the log')
  t.match((await ask(c, WWW)).answer, [/c0000201$/])
})

test('file: with reload 0 a missing file stops the start, and nothing is watched', async (t) => {
  const missing = setUp(t, 'file DIR/db {\n reload 0\n }', {})
  await t.rejects(missing.c.start(), {
    message: /plugin\/file: zone example\.org\. open .*no such/,
  })
  const { c, timers } = setUp(t, 'file DIR/db {\n reload 0\n }', { db: zone(1) })
  await c.start()
  t.equal(timers.count, 0)
})

test('file: what is there but can not be read stops the start, with its place', async (t) => {
  const { c, dir } = setUp(t, 'file DIR', {})
  await t.rejects(c.start(), {
    message: /plugin\/file: zone example\.org\. .* is not a regular file/,
    position: { file: dir, line: 1 },
  })
})

test('file: a faulty file stops the start, with its place', async (t) => {
  const { c, dir } = setUp(t, 'file DIR/db', { db: `${zone(1)}a 60 FOO\nb 60 FOO\n` })
  const error = await c.start().then(
    () => undefined,
    (reason: unknown) => reason,
  )
  t.match(error, { name: 'InputError', position: { file: join(dir, 'db'), line: 4 } })
  t.match(error, { message: /"FOO" is not a record type.*\(and 1 more faults\)$/ })
})

test('file: check lists every fault of every zone', async (t) => {
  const { c } = setUp(t, 'file DIR/a example.org\nfile DIR/b example.net\nfile DIR/c example.com', {
    a: `${zone(1)}a 60 FOO\nb 60 FOO\n`,
    b: zone(1),
  })
  const { faults, warnings } = await c.check()
  t.match(faults, [/a:4: /, /a:5: /])
  t.equal(faults.length, 2)
  t.match(warnings, [/^Corefile:3: Failed to open .*no such file.*trying again in 1m0s/])
})

test('file: check takes a missing file as a start does, at the line that names it', async (t) => {
  const lines = 'file DIR/gone {\n reload 0\n }\nfile DIR/later example.net {\n reload 30s\n }'
  const { c } = setUp(t, lines, {})
  const { faults, warnings } = await c.check()
  t.match(faults, [/^Corefile:1: plugin\/file: zone example\.org\. open .*gone.*no such file/])
  t.match(warnings, [/^Corefile:4: Failed to open .*later.*: trying again in 30s/])
  t.same([faults.length, warnings.length], [1, 1])
  await t.rejects(c.start(), { name: 'InputError', position: { file: 'Corefile', line: 1 } })
})

test('file: check warns of what a load would log', async (t) => {
  const { c } = setUp(t, 'file DIR/db', { db: `${zone(1)}www 30 A 192.0.2.2\n` })
  const { faults, warnings } = await c.check()
  t.same(faults, [])
  t.match(warnings, [/db:\d+: .*TTL/])
})

test('file: check warns of CNAMEs to missing names, unless something else may have them', async (t) => {
  const dir = t.testdir({ db: `${zone(1)}a 60 CNAME x.sub\n` })
  for (const [corefile, above, count] of [
    ['file DIR/db', [], 1],
    ['file DIR/db {\n fallthrough example.net\n }', ['cache'], 1],
    ['file DIR/db {\n fallthrough\n }', [], 0],
    ['file DIR/db', ['template'], 0],
    ['file DIR/db\nfile DIR/none sub.example.org', [], 0],
  ] as const) {
    const c = new SetUp(file, corefile.replaceAll('DIR', dir), ['example.org.'], {
      above: [...above],
    })
    const { warnings } = await c.check()
    const found = warnings.filter((line) => line.includes('CNAME of a.example.org. leads to'))
    t.equal(found.length, count, `${corefile} ${above}`)
  }
})

test('file: a stopped instance watches nothing', async (t) => {
  const { c, timers } = setUp(t, 'file DIR/db', { db: zone(1) })
  await c.start()
  t.equal(timers.count, 1)
  await c.stop()
  t.equal(timers.count, 0)
})

test('file: relative paths start at root, and zones may be CIDRs', async (t) => {
  const dir = t.testdir({ db: '@ 60 SOA ns. host. 1 2 3 4 5\n1 60 PTR www.example.org.\n' })
  const c = new SetUp(file, `file ${join(dir, 'db')} 192.0.2.0/24`)
  t.teardown(() => c.stop())
  await c.start()
  const shown = await ask(c, { name: '1.2.0.192.in-addr.arpa.', type: RRType.PTR })
  t.equal(shown.answer.length, 1)
})

const bad: { name: string; given: string; want: RegExp }[] = [
  { name: 'not a regular file', given: 'file', want: /Wrong argument count/ },
  { name: 'a bad zone', given: 'file db a..b', want: /not a valid domain name: a\.\.b/ },
  { name: 'reload without a time', given: 'file db {\n reload\n}', want: /value is expected/ },
  {
    name: 'reload without a unit',
    given: 'file db {\n reload 30\n}',
    want: /invalid duration "30"/,
  },
  { name: 'a negative reload', given: 'file db {\n reload -1s\n}', want: /invalid duration "-1s"/ },
  { name: 'an unknown property', given: 'file db {\n x\n}', want: /unknown property 'x'/ },
]

for (const { name, given, want } of bad) {
  test(`file: ${name} is refused`, async (t) => {
    t.match(setupError(file, given), want)
  })
}

test('file: a fault of ours in a reload costs that reload alone', async (t) => {
  const dir = t.testdir({ db: zone(1) })
  backdate(dir)
  const timers = new FakeTimers()
  const c = new SetUp(file, `file ${join(dir, 'db')}`, undefined, { timers })
  t.teardown(() => c.stop())
  await c.start()
  const { monotonic } = c.clock
  c.clock.monotonic = () => {
    throw new Error('boom')
  }
  writeFileSync(join(dir, 'db'), zone(2, '192.0.2.2'))
  await timers.advance(180_000)
  const errors = c.lines.filter((line) => line.startsWith('[ERROR]'))
  t.strictSame(errors, [
    '[ERROR] plugin/file: Reloading zone example.org. failed, the last valid state is kept: boom',
  ])
  const address = async () => (await ask(c, { name: 'www.example.org.' })).answer[0]?.slice(-2)
  t.equal(await address(), '01', 'the last good version')
  c.clock.monotonic = monotonic
  await timers.advance(60_000)
  await until(async () => (await address()) === '02', 'the new version')
})
