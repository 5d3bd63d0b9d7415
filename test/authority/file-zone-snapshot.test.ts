import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { collectProblems } from '../../src/base/telemetry/problems.ts'
import { auto } from '../../src/plugins/auto/setup.ts'
import { file } from '../../src/plugins/file/setup.ts'
import { backdate } from '../support/backdate.ts'
import { FakeTimers, SetUp, setupError } from '../support/setup.ts'
import { show, transaction } from '../support/transaction.ts'
import { until } from '../support/until.ts'

// Long: it loads large zones in many threads.

/** A zone file with so many records that it has a snapshot. */
const NAMES = Array.from({ length: 20_000 }, (_, i) => {
  return `n${i} 60 IN A 192.0.2.${i % 250} ; ${'x'.repeat(100)}\n`
}).join('')
const text = (serial: number): string => {
  return `@ 60 SOA a b ${serial} 2 3 4 5\n@ 60 NS a\na 60 A 192.0.2.${serial}\n${NAMES}`
}

/** Starts a block, asks for an address, and returns its log without times. */
async function start(t: Test, corefile: string, directive = file) {
  const timers = new FakeTimers()
  const c = new SetUp(directive, corefile, ['example.org'], { timers })
  t.teardown(() => c.stop())
  await c.start()
  const address = async (): Promise<string> => {
    const { answer } = await show(c.handler(), transaction({ name: 'a.example.org.' }))
    return answer[0]?.split(' ')[4] ?? ''
  }
  const log = (): string[] => c.lines.map((line) => line.replace(/\d\.\d\d s/, 'N s'))
  return { c, timers, address, log }
}

t.test('file: the next start serves the snapshot, unless the file has changed', async (t) => {
  const directory = t.testdir({ db: text(1) })
  backdate(directory)
  const snapshot = join(directory, 'snapshot')
  const corefile = `file ${join(directory, 'db')} {\n reload 1s\n snapshot ${snapshot}\n}`
  const written = async (): Promise<void> => {
    await until(() => existsSync(snapshot), 'the snapshot')
  }
  const first = await start(t, corefile)
  t.strictSame(first.log(), [`[INFO] plugin/file: there is no snapshot ${snapshot} yet`])
  await written()
  await first.c.stop()

  const second = await start(t, corefile)
  t.equal(await second.address(), 'c0000201')
  const loaded = `[INFO] plugin/file: snapshot ${snapshot} loaded in N s: serial 1`
  t.strictSame(second.log(), [loaded])
  // A version that a reload has loaded is kept too.
  rmSync(snapshot)
  writeFileSync(join(directory, 'db'), text(2))
  await second.timers.advance(1000)
  await until(async () => (await second.address()) === 'c0000202', 'the new version')
  await written()
  await second.c.stop()
  const octets = readFileSync(snapshot)
  truncateSync(snapshot, 1000)
  const cut = await start(t, corefile)
  const reason = `it is incomplete: 1000 of ${octets.length} octets`
  t.strictSame(cut.log(), [`[WARNING] plugin/file: snapshot ${snapshot} is not used: ${reason}`])
  t.equal(await cut.address(), 'c0000202')
  await until(() => readFileSync(snapshot).length === octets.length, 'another snapshot')
  await cut.c.stop()

  writeFileSync(join(directory, 'db'), text(3))
  const changed = await start(t, corefile)
  const why = 'the zone file has changed since'
  t.strictSame(changed.log(), [`[WARNING] plugin/file: snapshot ${snapshot} is not used: ${why}`])
  t.equal(await changed.address(), 'c0000203')
  await until(() => readFileSync(snapshot).includes('"serial":3'), 'its snapshot')
})

t.test('file: a reload during a load waits, and the newest version is served', async (t) => {
  const directory = t.testdir({ db: text(1) })
  backdate(directory)
  const db = join(directory, 'db')
  const { timers, address, log } = await start(t, `file ${db} {\n reload 1s\n}`)
  const lines = log().length
  writeFileSync(db, text(2))
  await timers.advance(1000)
  // The load of version 2 is under way: this tick does nothing.
  writeFileSync(`${db}.next`, text(3))
  renameSync(`${db}.next`, db)
  await timers.advance(1000)
  t.equal(await address(), 'c0000201')
  await until(() => log().length > lines, 'the end of the load')
  await timers.advance(1000)
  await until(async () => (await address()) === 'c0000203', 'the newest version')
  const faults = log().filter((line) => !line.startsWith('[INFO]'))
  t.strictSame(faults, [])
})

t.test('file: a small file has no snapshot', async (t) => {
  const directory = t.testdir({ db: '@ 60 SOA a b 1 2 3 4 5\n@ 60 NS a\na 60 A 192.0.2.1\n' })
  const snapshot = join(directory, 'snapshot')
  const { log } = await start(t, `file ${join(directory, 'db')} {\n snapshot ${snapshot}\n}`)
  t.strictSame(log(), [])
  t.notOk(existsSync(snapshot))
})

t.test('file: a snapshot that cannot be written is a problem; the zone is served', async (t) => {
  const directory = t.testdir({ db: text(1), snapshot: 'no snapshot\n' })
  const snapshot = join(directory, 'snapshot')
  const corefile = `file ${join(directory, 'db')} {\n snapshot ${snapshot}\n}`
  const { c, address, log } = await start(t, corefile)
  t.equal(await address(), 'c0000201')
  await until(() => log().length === 2, 'the log')
  t.strictSame(log(), [
    `[WARNING] plugin/file: snapshot ${snapshot} is not used: it is not a snapshot`,
    `[ERROR] plugin/file: snapshot ${snapshot} cannot be written: it is not a snapshot`,
  ])
  t.equal(readFileSync(snapshot, 'utf8'), 'no snapshot\n')
  t.match(collectProblems(c.problemReports).listed, [
    { object: snapshot, reason: /otherwise, after a restart, the zone is read from its file/ },
  ])
})

t.test('auto: only large files have a snapshot', async (t) => {
  const small = '@ 60 SOA a b 1 2 3 4 5\n@ 60 NS a\na 60 A 192.0.2.1\n'
  const directory = t.testdir({
    zones: { 'db.example.org': text(1), 'db.small.example.org': small },
  })
  const snapshots = join(directory, 'snapshots')
  mkdirSync(snapshots)
  const corefile = `auto {\n directory ${join(directory, 'zones')}\n snapshot ${snapshots}\n}`
  const first = await start(t, corefile, auto)
  const snapshot = join(snapshots, 'example.org.snapshot')
  await until(() => existsSync(snapshot), 'the snapshot')
  await first.c.stop()
  const second = await start(t, corefile, auto)
  t.equal(await second.address(), 'c0000201')
  const loaded = second.log().filter((line) => line.includes('/auto: snapshot '))
  t.strictSame(loaded, [`[INFO] plugin/auto: snapshot ${snapshot} loaded in N s: serial 1`])
})

t.test('invalid settings', async (t) => {
  const table = [
    ['file db example.org example.net {\n snapshot s\n}', /snapshot keeps one zone/],
    ['file db example.org {\n snapshot\n}', /Wrong argument count/],
    [
      'file db example.org {\n snapshot s\n}\nfile db2 example.net {\n snapshot s\n}',
      /snapshot \S+s belongs to another zone/,
    ],
  ] as const
  for (const [corefile, want] of table) t.match(setupError(file, corefile), want)
  t.match(setupError(auto, 'auto {\n directory .\n snapshot a b\n}'), /Wrong argument count/)
})
