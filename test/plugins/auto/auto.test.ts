// biome-ignore-all lint/suspicious/noTemplateCurlyInString: origin templates look like placeholders

import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { LinearRegExp } from '../../../src/base/re2/linear-regexp.ts'
import { FilePattern } from '../../../src/plugins/auto/file-pattern.ts'
import { auto } from '../../../src/plugins/auto/setup.ts'
import { backdate } from '../../support/backdate.ts'
import { FakeTimers, SetUp, setupError } from '../../support/setup.ts'
import { show, transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'

function zone(serial: number, address = '192.0.2.1'): string {
  return `@ 60 SOA ns host ${serial} 2 3 4 5\n@ 60 NS ns.invalid.\nwww 60 A ${address}\n`
}

function setUp(
  t: Test,
  files: NonNullable<Parameters<Test['testdir']>[0]>,
  properties = '',
  zones = ['.'],
) {
  const dir = t.testdir(files)
  backdate(dir)
  const timers = new FakeTimers()
  const corefile = `auto {\n directory ${dir}${properties}\n }`
  const c = new SetUp(auto, corefile, zones, { timers })
  t.teardown(() => c.stop())
  return { c, dir, timers }
}

async function status(c: SetUp, name: string): Promise<string> {
  const shown = await show(c.handler(), transaction({ name }))
  return [shown.status.split(' ')[0], ...shown.answer.map((line) => line.split(' ')[4])].join(' ')
}

test('auto: serves every zone file of the directory and below', async (t) => {
  const files = { 'db.example.org': zone(1), sub: { 'db.example.net': zone(1) }, other: 'x' }
  const { c, dir } = setUp(t, files)
  await c.start()
  t.equal(await status(c, 'www.example.org.'), 'NOERROR c0000201')
  t.equal(await status(c, 'www.example.net.'), 'NOERROR c0000201')
  t.equal(await status(c, 'www.example.com.'), 'REFUSED')
  t.match(c.lines, [
    `[INFO] plugin/auto: Inserting zone \`example.org.' from: ${join(dir, 'db.example.org')}`,
    `[INFO] plugin/auto: Inserting zone \`example.net.' from: ${join(dir, 'sub/db.example.net')}`,
  ])
})

test('auto: answers only inside of its own zones', async (t) => {
  const { c } = setUp(t, { 'db.example.org': zone(1), 'db.example.net': zone(1) }, '', [
    'example.org.',
  ])
  await c.start()
  t.equal(await status(c, 'www.example.org.'), 'NOERROR c0000201')
  t.equal(await status(c, 'www.example.net.'), 'REFUSED')
})

test('auto: picks up new, changed and vanished files', async (t) => {
  const { c, dir, timers } = setUp(t, { 'db.example.org': zone(1), 'db.example.net': zone(1) })
  await c.start()
  c.lines.length = 0
  writeFileSync(join(dir, 'db.example.org'), zone(2, '192.0.2.2'))
  writeFileSync(join(dir, 'db.example.com'), zone(1, '192.0.2.3'))
  rmSync(join(dir, 'db.example.net'))
  await timers.advance(60_000)
  await until(() => c.lines.length === 3, 'the log')
  t.equal(await status(c, 'www.example.org.'), 'NOERROR c0000202')
  t.equal(await status(c, 'www.example.com.'), 'NOERROR c0000203')
  t.equal(await status(c, 'www.example.net.'), 'REFUSED')
  t.match(c.lines.at(-1), "[INFO] plugin/auto: Deleting zone `example.net.'")
})

test('auto: a bad file is left out until it is good, a bad version keeps the last', async (t) => {
  const { c, dir, timers } = setUp(t, { 'db.example.org': 'x', 'db.example.net': zone(1) })
  await c.start()
  t.match(c.lines.join('\n'), /WARNING.*Parse zone `example\.org\.': .*db\.example\.org:1: /)
  t.equal(await status(c, 'www.example.org.'), 'REFUSED')
  c.lines.length = 0
  writeFileSync(join(dir, 'db.example.org'), zone(1))
  writeFileSync(join(dir, 'db.example.net'), `${zone(2)}broken`)
  await timers.advance(60_000)
  await until(() => c.lines.length === 2, 'the log')
  t.equal(await status(c, 'www.example.org.'), 'NOERROR c0000201')
  t.equal(await status(c, 'www.example.net.'), 'NOERROR c0000201')
})

test('auto: two files for one zone: the first is taken, with a warning', async (t) => {
  const { c, dir } = setUp(t, {
    a: { 'db.example.org': zone(1) },
    b: { 'db.example.org': zone(2, '192.0.2.2') },
  })
  await c.start()
  t.equal(await status(c, 'www.example.org.'), 'NOERROR c0000201')
  const [first, second] = [join(dir, 'a/db.example.org'), join(dir, 'b/db.example.org')]
  t.ok(
    c.lines.includes(
      `[WARNING] plugin/auto: Multiple zone files match origin "example.org.": using "${first}" instead of "${second}"`,
    ),
    c.lines.join('\n'),
  )
})

test('auto: a volume as Kubernetes mounts it is read through its links', async (t) => {
  const { c, dir } = setUp(t, { '..2025_01': { 'db.example.org': zone(1) } })
  symlinkSync('..2025_01', join(dir, '..data'))
  symlinkSync('..data/db.example.org', join(dir, 'db.example.org'))
  await c.start()
  t.equal(await status(c, 'www.example.org.'), 'NOERROR c0000201')
  t.equal(c.lines.length, 1, c.lines.join('\n'))
})

test('auto: while the directory is gone, its zones stay', async (t) => {
  const { c, dir, timers } = setUp(t, { zones: { 'db.example.org': zone(1) } })
  await c.start()
  c.lines.length = 0
  renameSync(dir, `${dir}-away`)
  t.teardown(() => rmSync(`${dir}-away`, { recursive: true, force: true }))
  await timers.advance(60_000)
  await until(() => c.lines.length > 0, 'the log')
  t.match(c.lines, [`[WARNING] plugin/auto: Directory does not exist: ${dir}`])
  t.equal(await status(c, 'www.example.org.'), 'NOERROR c0000201')
  mkdirSync(dir)
})

test('auto: a circle of links comes to an end', async (t) => {
  const { c, dir } = setUp(t, { sub: { 'db.example.org': zone(1) } })
  symlinkSync('..', join(dir, 'sub/up'))
  await c.start()
  t.equal(await status(c, 'www.example.org.'), 'NOERROR c0000201')
})

test('auto: check lists the faults of all files', async (t) => {
  const { c } = setUp(t, { 'db.example.org': 'x', 'db.example.net': zone(1) })
  t.equal((await c.check()).faults.length, 1)
})

test('auto: check warns, as a start does, of a directory that does not exist', async (t) => {
  const { c, dir } = setUp(t, {})
  rmSync(dir, { recursive: true })
  const { faults, warnings } = await c.check()
  t.same(faults, [])
  t.same(warnings, [`Corefile:2: Directory does not exist: ${dir}`])
  mkdirSync(dir)
})

test('auto: with reload 0 nothing is watched', async (t) => {
  const { c, timers } = setUp(t, {}, '\n reload 0')
  await c.start()
  t.equal(timers.count, 0)
})

const patterns: { name: string; given: [string, string, string]; want: string | undefined }[] = [
  { name: 'the default', given: ['db\\.(.*)', '{1}', 'db.example.org'], want: 'example.org' },
  { name: 'two groups', given: ['(.*)-(.*)', '{2}.{1}.', 'a-b'], want: 'b.a.' },
  { name: 'dollar form', given: ['db\\.(.*)', '${1}', 'db.a'], want: 'a' },
  { name: 'a group that took no part', given: ['db(x)?(.*)', '{1}{2}', 'db.a'], want: '.a' },
  { name: 'anywhere in the name', given: ['db\\.(.*)', '{1}', 'old-db.a'], want: 'a' },
  { name: 'no match', given: ['db\\.(.*)', '{1}', 'zone.a'], want: undefined },
  { name: 'a named group', given: ['db\\.(?P<zone>.*)', '{zone}', 'db.a'], want: 'a' },
  { name: 'backtracking', given: ['(a|a)*b', '{1}', 'a'.repeat(255)], want: undefined },
]

for (const { name, given, want } of patterns) {
  test(`auto: file pattern: ${name}`, async (t) => {
    const [regexp, template, fileName] = given
    const pattern = new FilePattern(new LinearRegExp(regexp), template)
    t.equal(pattern.origin(fileName), want)
  })
}

const bad: { name: string; given: string; want: RegExp }[] = [
  { name: 'not a directory', given: 'auto {\n reload 1s\n}', want: /missing directory/ },
  { name: 'an empty directory', given: 'auto {\n directory\n}', want: /Wrong argument count/ },
  { name: 'no template', given: 'auto {\n directory d (x)\n}', want: /Wrong argument count/ },
  { name: 'no group', given: 'auto {\n directory d x {1}\n}', want: /at least one sub expression/ },
  {
    name: 'a bad regexp',
    given: 'auto {\n directory d (x {1}\n}',
    want: /invalid regular expression/,
  },
  { name: 'too much', given: 'auto {\n directory d (x) {1} 60\n}', want: /Wrong argument count/ },
  { name: 'a bad reload', given: 'auto {\n directory d\n reload x\n}', want: /invalid duration/ },
  { name: 'an unknown property', given: 'auto {\n x\n}', want: /unknown property 'x'/ },
]

for (const { name, given, want } of bad) {
  test(`auto: ${name} is refused`, async (t) => {
    t.match(setupError(auto, given), want)
  })
}

test('auto: a fault of ours in a walk costs that walk alone', async (t) => {
  const { c, dir, timers } = setUp(t, { 'db.example.org': zone(1) })
  await c.start()
  const { monotonic } = c.clock
  c.clock.monotonic = () => {
    throw new Error('boom')
  }
  writeFileSync(join(dir, 'db.example.org'), zone(2, '192.0.2.2'))
  await timers.advance(180_000)
  const errors = c.lines.filter((line) => line.startsWith('[ERROR]'))
  t.match(errors, [
    /plugin\/auto: Searching zones in .* failed, the last valid state is kept: boom/,
  ])
  t.equal(errors.length, 1)
  t.equal(await status(c, 'www.example.org.'), 'NOERROR c0000201', 'the last good version')
  c.clock.monotonic = monotonic
  await timers.advance(60_000)
  await until(
    async () => (await status(c, 'www.example.org.')) === 'NOERROR c0000202',
    'the new version',
  )
})
