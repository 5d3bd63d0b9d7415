import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { collectProblems } from '../../../src/base/telemetry/problems.ts'
import { Algorithm } from '../../../src/dns/dnssec/algorithms.ts'
import { sign } from '../../../src/plugins/sign/setup.ts'
import { needs, run } from '../../support/peer.ts'
import { FakeTimers, SetUp, setupError } from '../../support/setup.ts'
import { until } from '../../support/until.ts'
import { FLAGS_KSK, FLAGS_ZSK, writeKey } from '../dnssec/stage.ts'

const DAY_MS = 86_400_000
const ZONE = `@ 300 SOA ns host 7 2 3 4 60
@ 300 NS ns
ns 300 A 192.0.2.1
www 300 A 192.0.2.2
*.wild 300 TXT "any \\" name"
sub 300 NS ns.sub
ns.sub 300 A 192.0.2.3
@ 300 DNSKEY 257 3 13 AAAA
`

/** Makes a key pair, and returns its path without `.key`. */
async function makeKey(directory: string, zone: string, flags = FLAGS_KSK): Promise<string> {
  return (await writeKey(directory, zone, { flags })).path
}

async function setUp(t: Test, lines: readonly string[], zones = ['example.org.']) {
  const directory = t.testdir({ db: ZONE, keys: {} })
  const keys = join(directory, 'keys')
  const timers = new FakeTimers()
  const files = new Map([['KEY', await makeKey(keys, 'example.org.')]])
  const corefile = (): string => {
    let text = `sign ${directory}/db {\n${lines.join('\n')}\n directory ${directory}\n}`
    for (const [name, file] of files) text = text.replaceAll(name, file)
    return text.replaceAll('DIR', keys)
  }
  const start = async (): Promise<SetUp> => {
    const c = new SetUp(sign, corefile(), zones, { timers })
    c.clock.nowMs = Date.now()
    t.teardown(() => c.stop())
    await c.start()
    return c
  }
  const signed = join(directory, 'db.example.org.signed')
  const serial = (): number =>
    Number(/SOA\t\S+ \S+ (\d+)/.exec(readFileSync(signed, 'latin1'))?.[1])
  return { directory, keys, timers, files, start, signed, serial }
}

const isSigned = (file: string) => () => existsSync(file)

t.test('a zone is signed, and signed again if it must be', async (t) => {
  const { start, signed, timers, directory, serial } = await setUp(t, ['key file KEY'])
  const c = await start()
  await until(isSigned(signed), 'the signed file')
  const text = readFileSync(signed, 'latin1')
  t.match(
    text.split('\n')[0],
    /^example\.org\.\t300\tIN\tSOA\tns\.example\.org\. host\.example\.org\. \d+ /,
  )
  t.match(text, /\nwww\.example\.org\.\t300\tIN\tRRSIG\tA 13 3 300 /)
  t.match(text, /\nexample\.org\.\t\d+\tIN\tCDS\t\d+ 13 2 /)
  t.notMatch(text, /13 1 |3 13 AAAA|\nns\.sub\.example\.org\.\t\d+\tIN\t(?:RRSIG|NSEC)/)
  t.match(c.lines[0], /Signing "example.org." because open .*: no such file/)
  const end =
    /Successfully signed zone "example.org." in ".*signed" with key tags "\d+" and \d+ SOA serial, elapsed /
  await until(() => end.test(c.lines[1] ?? ''), 'the log line')
  await timers.advance(60_000)
  t.equal(readFileSync(signed, 'latin1'), text, 'nothing has changed')
  const first = serial()
  writeFileSync(join(directory, 'db'), ZONE.replace('192.0.2.2', '192.0.2.200'))
  await timers.advance(60_000)
  await until(() => serial() !== first, 'the edit')
  t.equal(serial(), first + 1, 'the clock stands still')
  c.clock.pass(6 * DAY_MS)
  await until(() => c.lines.length === 4, 'the end of it')
  await timers.advance(60_000)
  await until(() => serial() > first + 1, 'other signatures')
  t.match(c.lines[4], /began at .*, more than 6 days ago/)
  await until(() => c.lines.length === 6, 'the end of it')
  writeFileSync(join(directory, 'db'), 'www A\n')
  await timers.advance(60_000)
  await until(() => c.lines.length === 8, 'the fault')
  t.match(c.lines[7], /Error signing "example.org.": .*db:1: /)
  const [problem] = collectProblems(c.problemReports).listed
  t.match(problem?.reason, /zone example.org. is not signed again: .*db:1: /)
})

t.test('a wrong clock, or a full disk, keeps the signed file', async (t) => {
  const { start, signed, timers, directory, serial } = await setUp(t, ['key file KEY'])
  const c = await start()
  await until(() => c.lines.length === 2, 'the signed file')
  const text = readFileSync(signed, 'latin1')
  const edit = (last: number): void =>
    writeFileSync(join(directory, 'db'), ZONE.replace('192.0.2.2', `192.0.2.${last}`))
  const check = async (lines: number, fault: RegExp): Promise<void> => {
    await timers.advance(60_000)
    await until(() => c.lines.length === lines, 'the fault')
    t.match(c.lines.at(-1), fault)
    t.equal(readFileSync(signed, 'latin1'), text)
    t.equal(collectProblems(c.problemReports).listed.length, 1)
  }
  edit(20)
  c.clock.nowMs += 20 * DAY_MS
  await check(3, /Error signing "example\.org\.": the system's time jumped by 480 h/)
  c.clock.nowMs -= 60 * DAY_MS
  await check(4, /is before the newest signature of .*; set the clock/)
  c.clock.nowMs += 40 * DAY_MS
  mkdirSync(`${signed}.next`)
  await check(5, /Error signing "example\.org\.": .*\.next/)
  rmSync(`${signed}.next`, { recursive: true })
  const before = serial()
  await timers.advance(60_000)
  await until(() => serial() !== before, 'the edit')
  await until(() => c.lines.length === 6, 'the end of it')
  t.equal(collectProblems(c.problemReports).listed.length, 0)
  c.clock.nowMs += 20 * DAY_MS
  await timers.advance(60_000)
  c.clock.pass(3_600_000)
  await timers.advance(60_000)
  await until(() => serial() > before + 1, 'a clock that is steady for an hour is right')
})

t.test('a restart signs what was edited meanwhile, or has other keys', async (t) => {
  const { start, signed, directory, keys } = await setUp(t, ['key directory DIR'])
  const first = await start()
  await until(() => first.lines.length === 2, 'the signed file')
  await first.stop()
  const same = await start()
  t.strictSame(same.lines, [])
  await same.stop()
  const nextMs = Date.now() + 5000
  utimesSync(join(directory, 'db'), nextMs / 1000, nextMs / 1000)
  const edited = await start()
  await until(() => edited.lines.length === 2, 'the signed file')
  t.match(edited.lines[0], /db has changed$/)
  await edited.stop()
  utimesSync(join(directory, 'db'), 1, 1)
  await makeKey(keys, 'example.org.', FLAGS_ZSK)
  const other = await start()
  await until(() => other.lines.length === 2, 'the signed file')
  t.match(other.lines[0], /its keys have changed$/)
  t.equal(readFileSync(signed, 'latin1').match(/\tDNSKEY\t/g)?.length, 2)
  await other.stop()
  writeFileSync(signed, 'damaged\n')
  const damaged = await start()
  await until(() => damaged.lines.length === 2, 'the signed file')
})

t.test(
  'the file is valid for other software',
  needs('dnssec-verify', 'ldns-verify-zone'),
  async (t) => {
    const { start, signed, files, keys } = await setUp(t, ['key file KEY ZSK'])
    files.set('ZSK', await makeKey(keys, 'example.org.', FLAGS_ZSK))
    await start()
    await until(isSigned(signed), 'the signed file')
    const bind = await run('dnssec-verify', ['-o', 'example.org', signed])
    t.equal(bind.code, 0, bind.stderr)
    const ldns = await run('ldns-verify-zone', [signed])
    t.equal(ldns.code, 0, ldns.stderr + ldns.stdout)
  },
)

t.test('a key of another zone signs, with a warning', async (t) => {
  const { start, signed, files, keys } = await setUp(t, ['key file KEY'])
  files.set('KEY', await makeKey(keys, 'example.net.'))
  const c = await start()
  t.match(c.lines[0], /is of example.net., and signs example.org.$/)
  await until(isSigned(signed), 'the signed file')
})

t.test('keys that cannot be used stop the start, at their line', async (t) => {
  const { start, keys } = await setUp(t, ['key file KEY'])
  for (const name of readdirSync(keys)) rmSync(join(keys, name))
  await t.rejects(start(), /Corefile.*|plugin\/sign: .*\.key/)
  const other = await setUp(t, ['key directory DIR'], ['example.org.'])
  for (const name of readdirSync(other.keys)) rmSync(join(other.keys, name))
  await t.rejects(
    other.start(),
    /no key of example.org. in .*keys; make one with `sextant keys generate/,
  )
})

t.test('a file that cannot be written is a fault', async (t) => {
  const { start, signed } = await setUp(t, ['key file KEY'])
  mkdirSync(signed)
  const c = await start()
  await until(() => c.lines.length === 2, 'the fault')
  t.match(c.lines[1], /Error signing "example.org.": /)
})

t.test('faults of the Corefile', (t) => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ['sign', /argument/],
    ['sign db', /missing key/],
    ['sign db { directory . }', /missing key/],
    ['sign db { key files a }', /unknown kind of key 'files'; write `key file`/],
    ['sign db { key file }', /argument/],
    ['sign db { key file a\n directory a b }', /argument/],
    ['sign db { key file a\n nsec3 }', /nsec3/],
    ['sign db { key file a }\nsign db2 { key file a }', /belongs to another line of sign/],
    ['sign /s/db.example.org.signed { key file a\n directory /s }', /would be replaced/],
  ]
  for (const [corefile, fault] of cases) t.match(setupError(sign, corefile), fault, corefile)
  t.end()
})

t.test('a key with an algorithm that should not be used any more', async (t) => {
  const { files, start, keys, signed } = await setUp(t, ['key file OLD'])
  const algorithm = Algorithm.RsaSha512
  files.set('OLD', (await writeKey(keys, 'example.org.', { algorithm })).path)
  const c = await start()
  await until(isSigned(signed), 'the signed file')
  t.match(c.lines, [/algorithm RSASHA512 should not be used any more \(RFC 9904\)/])
})
