import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { EventLog } from '../../../src/base/telemetry/event-log.ts'
import { CertificateFiles } from '../../../src/plugins/admin/certificate.ts'
import { EventFile } from '../../../src/plugins/admin/event-file.ts'
import { admin } from '../../../src/plugins/admin/setup.ts'
import { TokenFiles } from '../../../src/plugins/admin/token.ts'
import { STATUS } from '../../support/admin-site.ts'
import { selfSigned } from '../../support/certificate.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { FakeClock, SetUp, setupError } from '../../support/setup.ts'

const TOKEN = 'a'.repeat(32)

/** Replaces a file atomically. */
function replace(path: string, text: string): void {
  writeFileSync(`${path}.new`, text)
  renameSync(`${path}.new`, path)
}

t.test('invalid properties', async (t) => {
  const table = [
    { corefile: 'admin 1 2', error: /Wrong argument count/ },
    { corefile: 'admin nowhere', error: /missing port in address/ },
    { corefile: 'admin {\n color red\n}', error: /unknown property 'color'/ },
    { corefile: 'admin {\n token\n}', error: /Wrong argument count/ },
    {
      corefile: 'admin {\n token a\n token b\n}',
      error: /token appears twice for the role operate/,
    },
    { corefile: 'admin {\n token a read\n}', error: /`view` or `operate`, got read/ },
    { corefile: 'admin {\n token a view\n token b view\n}', error: /twice for the role view/ },
    { corefile: 'admin {\n token a view x\n}', error: /Wrong argument count/ },
    { corefile: 'admin {\n tls a\n}', error: /Wrong argument count/ },
    { corefile: 'admin {\n console\n}', error: /Wrong argument count/ },
    { corefile: 'admin {\n console 1\n}', error: /console must be on or off, got 1/ },
    { corefile: 'admin {\n console on\n console on\n}', error: /console appears twice/ },
    { corefile: 'admin {\n host -x\n}', error: /host is not a host name: -x/ },
    { corefile: 'admin {\n events a 0\n}', error: /size of the event file must be from 1/ },
    { corefile: 'admin {\n events a 1x\n}', error: /size of the event file must be from 1/ },
    {
      corefile: 'admin :9154',
      error: /other machines reach :9154: add `token FILE` and `tls CERT KEY`/,
    },
    { corefile: 'admin 192.0.2.1:9154 {\n token a\n}', error: /add `tls CERT KEY`/ },
    { corefile: 'admin [2001:db8::1]:1 {\n tls a b\n}', error: /add `token FILE`/ },
    { corefile: 'admin 127.0.0.1.example.org:1', error: /other machines reach/ },
    { corefile: 'admin\nadmin', error: /only be used once/ },
    { corefile: 'admin {\n server a\n}', error: /Wrong argument count/ },
    { corefile: 'admin {\n server -a localhost\n}', error: /server "-a": use letters, digits/ },
    { corefile: 'admin {\n server a https://h/x\n}', error: /server a: write its address as HOST/ },
    { corefile: 'admin {\n server a https://u:secret@h\n}', error: /server a: (?!.*secret)write/ },
    { corefile: 'admin {\n server a https://h?x\n}', error: /server a: write its address/ },
    { corefile: 'admin {\n server a https://h/#x\n}', error: /server a: write its address/ },
    { corefile: 'admin {\n server a ftp://h\n}', error: /server a: write its address/ },
    { corefile: 'admin {\n server a http://ns1.example.org\n}', error: /needs TLS: write https/ },
    { corefile: 'admin {\n server a http://192.0.2.1:80\n}', error: /needs TLS/ },
    { corefile: 'admin {\n server a http://127.0.0.1.example.org:80\n}', error: /needs TLS/ },
    { corefile: 'admin {\n server a h\n server a i\n}', error: /server a: the name appears twice/ },
    {
      corefile: 'admin {\n server a h\n server b https://h:9154\n}',
      error: /server b: https:\/\/h:9154 appears twice/,
    },
    { corefile: 'admin {\n server a h {\n  tls x\n }\n}', error: /unknown property 'tls'/ },
    { corefile: 'admin {\n server a h {\n  ca x\n  ca y\n }\n}', error: /ca appears twice/ },
    {
      corefile: 'admin {\n server a localhost {\n  ca x\n }\n}',
      error: /ca has no effect without TLS/,
    },
    {
      corefile: `admin {\n${Array.from({ length: 65 }, (_, i) => ` server s${i} h${i}\n`).join('')}}`,
      error: /more than 64 servers/,
    },
  ]
  for (const { corefile, error } of table) t.match(setupError(admin, corefile), error, corefile)
})

t.test('addresses that only this machine reaches need no token', async (t) => {
  for (const address of ['', 'localhost:1', '127.0.0.1:1', '127.9.9.9:1', '[::1]:1']) {
    t.equal(setupError(admin, `admin ${address}`), '', address)
  }
})

t.test('a directive with an invalid token does not start', async (t) => {
  const directory = t.testdir({ token: 'short' })
  const setUp = new SetUp(admin, `admin {\n token ${directory}/token\n}`)
  await t.rejects(setUp.start(), { message: /token .* has 5 characters: write at least 32/ })
  t.match((await setUp.check()).faults, [/^Corefile:1: token .* has 5 characters/])
  await setUp.stop()
})

t.test(
  'the check reads the credentials for other servers, and a start does not need them',
  async (t) => {
    const files = t.testdir({ token: 'a\nb', ca: '' })
    const table = [
      { property: `token ${files}/none`, fault: /ENOENT/ },
      { property: `token ${files}/token`, fault: /token has no token/ },
      { property: `ca ${files}/none`, fault: /ENOENT/ },
    ]
    for (const { property, fault } of table) {
      const setUp = new SetUp(admin, `admin {\n server ns2 192.0.2.2 {\n  ${property}\n }\n}`)
      t.match((await setUp.check()).faults, [fault], property)
      await setUp.start()
      await setUp.stop()
    }
  },
)

t.test('the directory of the event file must exist', async (t) => {
  const directory = t.testdir({})
  const warnings = async (path: string): Promise<readonly string[]> => {
    return (await new SetUp(admin, `admin {\n events ${directory}/${path}\n}`).check()).warnings
  }
  t.strictSame(await warnings('events'), [])
  t.match(await warnings('none/events'), [/^Corefile:1: events: .*none is not a directory$/])
})

t.test('the status joins the reports of plugins', async (t) => {
  const setUp = new SetUp(admin, 'admin')
  await setUp.start()
  t.teardown(() => setUp.stop())
  const [site] = setUp.adminSites
  const database = { file: 'city.mmdb', built: '', fault: '' }
  const shifts = Array.from({ length: 1001 }, (_, i) => ({ ...STATUS.shifts[0]!, records: i }))
  setUp.statusReports.push(
    () => ({ databases: [database], endpointsOmitted: 2, shifts }),
    () => ({ databases: [{ ...database }], endpointsOmitted: 1, shifts: structuredClone(shifts) }),
  )
  setUp.readiness.push(
    { name: 'kuadrant', check: () => 'records are not loaded yet' },
    { name: 'geoip', check: () => '', note: () => 'the old version' },
  )
  const problem = { place: 'a.yaml:1', object: 'ns/a', reason: 'bad' }
  const groups = () => [{ kind: 'manifest', of: 'a', count: 3, problems: [problem] } as const]
  setUp.problemReports.push({ plugin: 'kuadrant', groups }, { plugin: 'kuadrant', groups })
  t.match(site?.status(), {
    problems: [{ ...problem, kind: 'manifest', plugin: 'kuadrant' }],
    problemCounts: { manifest: 3 },
    threads: 1,
    corefile: { path: 'Corefile' },
    databases: [database],
    endpointsOmitted: 3,
    shiftsOmitted: 1,
    notReady: [{ plugin: 'kuadrant', text: 'records are not loaded yet' }],
    notes: [{ plugin: 'geoip', text: 'the old version' }],
  })
  t.equal(site?.status().databases.length, 1, 'blocks with one file list it once')
  t.equal(site?.status().shifts.length, 1000, 'and with one source its shifts')
})

t.test('the log of events lasts over a reload, which is an event', async (t) => {
  const first = new SetUp(admin, 'admin')
  await first.start()
  const log = first.adminSites[0]?.events()
  const next = new SetUp(admin, 'admin')
  await next.start()
  await first.stop()
  t.equal(next.adminSites[0]?.events(), log)
  t.strictSame(
    log?.after(0, 10).map(({ actor }) => actor.kind),
    ['start', 'reload'],
  )
  await next.stop()
})

t.test('a token file', async (t) => {
  const path = join(t.testdir({ token: `${TOKEN}\n` }), 'token')
  const file = new TokenFiles({ view: '', operate: path })
  file.check()
  const accepts = (header: string | undefined) => file.roleOf(header) === 'operate'
  t.ok(accepts(`Bearer ${TOKEN}`))
  t.ok(accepts(`bearer  ${TOKEN} `))
  const wrong = [undefined, '', TOKEN, 'Bearer', 'Bearer ', `Basic ${TOKEN}`, `Bearer ${TOKEN}a`]
  for (const header of [
    ...wrong,
    `Bearer ${TOKEN.slice(1)}`,
    `Bearer ${TOKEN} x`,
    `Bearer ${TOKEN},`,
  ]) {
    t.notOk(accepts(header), String(header))
  }
  const next = 'b'.repeat(64)
  replace(path, next)
  t.ok(accepts(`Bearer ${next}`), 'a changed file counts')
  t.notOk(accepts(`Bearer ${TOKEN}`))
  for (const bad of [
    'short',
    `${TOKEN} ${TOKEN}`,
    `${TOKEN}\n${TOKEN}`,
    'ä'.repeat(40),
    'c'.repeat(5000),
  ]) {
    replace(path, bad)
    t.notOk(accepts(`Bearer ${bad}`), 'an invalid file refuses all')
    t.match(file.fault, /^token /)
    t.notMatch(file.fault, bad)
  }
  rmSync(path)
  t.notOk(accepts(`Bearer ${next}`), 'a missing file refuses all')
  t.match(file.fault, /ENOENT/)
  replace(path, TOKEN)
  t.ok(accepts(`Bearer ${TOKEN}`), 'a valid file counts again')
  t.equal(file.fault, '')
  rmSync(path)
  execFileSync('mkfifo', [path])
  t.notOk(accepts(`Bearer ${TOKEN}`), 'a FIFO does not block the thread')
  t.match(file.fault, /is not a regular file/)
  replace(path, TOKEN.padEnd(2 * 1024 * 1024))
  t.notOk(accepts(`Bearer ${TOKEN}`))
  t.match(file.fault, /larger than 1 MiB/)
})

t.test('tokens of two roles', async (t) => {
  const [viewing, acting] = [TOKEN, 'b'.repeat(32)]
  const directory = t.testdir({ view: viewing, operate: acting })
  const paths = { view: join(directory, 'view'), operate: join(directory, 'operate') }
  const files = new TokenFiles(paths)
  files.check()
  t.equal(files.roleOf(`Bearer ${viewing}`), 'view')
  t.equal(files.roleOf(`Bearer ${acting}`), 'operate')
  t.equal(files.roleOf(`Bearer ${'c'.repeat(32)}`), undefined)
  t.equal(new TokenFiles({ ...paths, operate: '' }).roleOf(`Bearer ${acting}`), undefined)
  replace(paths.view, 'short')
  t.equal(files.roleOf(`Bearer ${acting}`), 'operate', 'an invalid file concerns its role only')
  t.equal(files.roleOf('Bearer short'), undefined)
  t.match(files.faults, [{ path: paths.view, reason: /has 5 characters/ }])
  replace(paths.view, acting)
  t.equal(files.roleOf(`Bearer ${acting}`), 'view', 'the same token has the smaller role')
  t.throws(() => files.check(), { message: /view is the token of the role operate/ })
})

t.test('certificate files', async (t) => {
  const { cert, key } = selfSigned('ns1.example.org')
  const directory = t.testdir({ cert, key })
  const [certFile, keyFile] = [join(directory, 'cert'), join(directory, 'key')]
  const files = new CertificateFiles(certFile, keyFile)
  t.strictSame(files.read(), { cert, key })
  t.equal(files.readChanged(), undefined)
  const other = selfSigned('ns1.example.org')
  replace(certFile, other.cert)
  t.throws(() => files.readChanged(), { name: 'InputError', message: /^tls .*key values mismatch/ })
  replace(keyFile, other.key)
  t.strictSame(files.readChanged(), other)
  replace(certFile, 'nonsense')
  t.throws(() => files.read(), { name: 'InputError', message: /^tls / })
})

function openEvents(t: Test, path: string, octetsMax: number) {
  const { lines, log } = recordLog()
  const events = new EventLog(new FakeClock())
  const file = new EventFile({ path, octetsMax, events, log })
  t.teardown(() => file.close())
  const add = (text: string) => events.add({ actor: { kind: 'load', name: '' }, text })
  return { lines, events, file, add }
}

const textsIn = (path: string): string[] =>
  readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).text)

t.test('events are lines of a file, which rotates', async (t) => {
  const path = join(t.testdir({}), 'events.jsonl')
  const { file, add, lines } = openEvents(t, path, 250)
  for (const text of ['one', 'two']) add(text)
  await file.written()
  t.strictSame(textsIn(path), ['one', 'two'])
  add('three')
  await file.written()
  t.strictSame(textsIn(`${path}.1`), ['one', 'two'])
  t.strictSame(textsIn(path), ['three'])
  t.strictSame(lines, [])
})

t.test('of two processes with one file, only one rotates it', async (t) => {
  const path = join(t.testdir({}), 'events.jsonl')
  const writers = [openEvents(t, path, 250), openEvents(t, path, 250)]
  const written = () => Promise.all(writers.map(({ file }) => file.written()))
  let before: readonly string[] = []
  for (let round = 0; round < 20; round++) {
    // As long as the limit, so that each round finds a full file.
    const old = `round ${round}`.padEnd(200, '.')
    writers[0]!.add(old)
    await written()
    t.strictSame(textsIn(path), [old])
    if (round > 0) t.strictSame(textsIn(`${path}.1`).sort(), before)
    for (const [i, { add }] of writers.entries()) add(`writer ${i}`)
    await written()
    before = ['writer 0', 'writer 1']
    t.strictSame(textsIn(`${path}.1`), [old])
    t.strictSame(textsIn(path).sort(), before)
  }
  for (const { lines } of writers) t.strictSame(lines, [])
  t.notOk(existsSync(`${path}.lock`))
})

t.test('a reload that changes the size of the file writes each event once', async (t) => {
  const path = join(t.testdir({}), 'events.jsonl')
  const first = new SetUp(admin, `admin {\n events ${path} 1\n}`)
  await first.start()
  const next = new SetUp(admin, `admin {\n events ${path} 2\n}`)
  await next.start()
  const log = next.adminSites[0]?.events()
  log?.add({ actor: { kind: 'load', name: '' }, text: 'during the reload' })
  await first.stop()
  log?.add({ actor: { kind: 'load', name: '' }, text: 'after the reload' })
  await next.stop()
  const served = 'the Corefile is served'
  t.strictSame(textsIn(path), [served, served, 'during the reload', 'after the reload'])
})

t.test('a file that can not be written is reported once, and later written again', async (t) => {
  const directory = join(t.testdir({}), 'later')
  const path = join(directory, 'events.jsonl')
  const { file, add, lines } = openEvents(t, path, 250)
  for (const text of ['one', 'two']) {
    add(text)
    await file.written()
  }
  t.match(lines, [/^\[ERROR\] events cannot be written to .*ENOENT/])
  const [group] = file.problems
  t.match(
    [...group!.problems],
    [{ place: path, reason: /^events in .*ENOENT.*, events are lost$/ }],
  )
  mkdirSync(directory)
  chmodSync(directory, 0o755)
  add('three')
  await file.written()
  t.strictSame(textsIn(path), ['three'])
  t.match(lines[1], /lacks 2 events that could not be written$/)
  t.strictSame(file.problems, [])
})

t.test(
  'a part of a line, as a full disk or a crash leaves it, does not damage an event',
  async (t) => {
    const path = join(t.testdir({ 'events.jsonl': '{"text":"old"}\n{"te' }), 'events.jsonl')
    const { file, add } = openEvents(t, path, 250)
    for (const text of ['one', 'two']) {
      add(text)
      await file.written()
    }
    const lines = readFileSync(path, 'utf8').split('\n')
    t.strictSame(lines.slice(0, 2), ['{"text":"old"}', '{"te'])
    t.match(lines.slice(2), [/"text":"one"/, /"text":"two"/, /^$/])
  },
)

t.test('a FIFO without a reader does not block the end of the server', async (t) => {
  const path = join(t.testdir({}), 'events.jsonl')
  execFileSync('mkfifo', [path])
  const { file, add, lines } = openEvents(t, path, 250)
  add('one')
  await file.written()
  t.match(lines, [/events cannot be written to .*: it is not a regular file$/])
})
