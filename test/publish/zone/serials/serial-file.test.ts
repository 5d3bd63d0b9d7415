import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { checkStateFile } from '../../../../src/base/persist/state-file.ts'
import { SerialFile } from '../../../../src/publish/zone/serials/serial-file.ts'
import { SerialIndex } from '../../../../src/publish/zone/serials/serial-index.ts'
import { RESERVED_COMMITS, SERIALS } from '../../../../src/publish/zone/serials/serial-text.ts'
import { isSerialAfter } from '../../../../src/publish/zone/soa.ts'
import { FakeClock, FakeTimers } from '../../../support/setup.ts'

/** One run of a process over the file. */
function start(path: string, clock = new FakeClock()) {
  const timers = new FakeTimers()
  const lines: string[] = []
  const note = (text: string) => lines.push(text)
  const log = { debug: note, info: note, warning: note, error: note }
  const index = new SerialIndex()
  const options = { path, index, log, clock, timers }
  const file = new SerialFile(options)
  const serve = (digest: string, zone = 'z.'): number => {
    const before = index.entriesOf(zone)[0]
    file.catchUp()
    const serial = index.serialFor({ zone, place: 'p', digest }, clock.now())
    if (before?.serial !== serial || before.digest !== digest) file.save([zone])
    return serial
  }
  const pass = async (milliseconds: number): Promise<void> => {
    clock.nowMs += milliseconds
    clock.monotonicMs += milliseconds
    await timers.advance(milliseconds)
  }
  return { file, serve, pass, lines, options }
}

const path = (t: Test) => join(t.testdir({}), 'serials')

t.test('a restart with the same content keeps the serial, with another it grows', async (t) => {
  const at = path(t)
  const first = start(at)
  const serials = ['a', 'b', 'c'].map((digest) => first.serve(digest))
  first.file.close()
  const past = new FakeClock()
  past.nowMs = 1000
  const second = start(at, past)
  t.equal(second.serve('c'), serials[2])
  t.equal(second.serve('d'), serials[2]! + 1)
  t.strictSame([...first.lines, ...second.lines], [])
})

t.test(
  'a change is exact on the disk a second later, and many changes are few writes',
  async (t) => {
    const at = path(t)
    const run = start(at)
    run.serve('a')
    t.match(readFileSync(at, 'utf8'), /^sextant serials 1 open\nz\. p a \d+\n/)
    await run.pass(1000)
    t.match(readFileSync(at, 'utf8'), /^sextant serials 1 clean\nz\. p a \d+\n/)
    const versions = new Set<string>()
    for (let i = 0; i < 600; i++) {
      run.serve(`d${i}`)
      versions.add(readFileSync(at, 'utf8'))
      await run.pass(100)
      versions.add(readFileSync(at, 'utf8'))
    }
    t.equal(versions.size, 12, 'a minute: a reservation and an exact version every 10 s')
    await run.pass(10_000)
    t.match(readFileSync(at, 'utf8'), /^sextant serials 1 clean\nz\. p d599 \d+\n/)
  },
)

t.test('a burst is one write per reservation', async (t) => {
  const at = path(t)
  const run = start(at)
  const versions = new Set<string>()
  for (let i = 0; i < 3 * (RESERVED_COMMITS + 1); i++) {
    run.serve(`d${i}`)
    versions.add(readFileSync(at, 'utf8').split('\n', 2).join())
  }
  t.equal(versions.size, 3)
})

t.test('serials continue over 2^32 (RFC 1982), also above a reservation', async (t) => {
  const at = path(t)
  const clock = new FakeClock()
  clock.nowMs = (2 ** 32 - 3) * 1000
  const run = start(at, clock)
  const serials = ['a', 'b', 'c', 'd', 'e'].map((digest) => run.serve(digest))
  t.strictSame(serials, [2 ** 32 - 3, 2 ** 32 - 2, 2 ** 32 - 1, 1, 2])
  const next = start(at, clock).serve('f')
  t.ok(isSerialAfter(next, serials.at(-1)!), `${next}`)
})

const act = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('serve' as const), digest: fc.nat(3) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), digest: fc.nat(1500) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('burst' as const), digest: fc.nat(2500) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('crash' as const), digest: fc.nat(3) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('stop' as const), digest: fc.nat(3) }) },
)

t.test('whatever crashes or stops when, no content gets a serial that another had', async (t) => {
  const at = path(t)
  const property = fc.asyncProperty(fc.array(act, { maxLength: 40 }), async (acts) => {
    rmSync(at, { force: true })
    const clock = new FakeClock()
    let run = start(at, clock)
    let last: { digest: string; serial: number } | undefined
    const serve = (digest: string): boolean => {
      const serial = run.serve(digest)
      const isKept = last?.digest === digest && last.serial === serial
      const isGood = last === undefined || isKept || isSerialAfter(serial, last.serial)
      last = { digest, serial }
      return isGood
    }
    for (const { do: what, digest } of acts) {
      if (what === 'serve' && !serve(`d${digest}`)) return false
      if (what === 'wait') await run.pass(digest)
      if (what === 'burst') for (let i = 0; i < digest; i++) if (!serve(`b${i}`)) return false
      if (what === 'stop') run.file.close()
      // The clock of a machine may be wrong after a restart.
      if (what === 'crash' || what === 'stop') {
        clock.nowMs -= 5_000_000
        run = start(at, clock)
        const before = last
        if (before !== undefined && !serve(before.digest)) return false
        if (what === 'stop' && last?.serial !== before?.serial) return false
      }
    }
    return true
  })
  await fc.assert(property, { seed: 7, numRuns: 60 })
})

t.test('two processes of a takeover go on above each other, and so does the next', async (t) => {
  const at = path(t)
  const clock = new FakeClock()
  const [old, young] = [start(at, clock), start(at, clock)]
  const serials = [
    old.serve('a'),
    young.serve('b'),
    old.serve('c'),
    old.serve('d'),
    young.serve('e'),
    young.serve('f'),
    old.serve('g'),
  ]
  for (const [i, serial] of serials.entries()) {
    t.ok(i === 0 || isSerialAfter(serial, serials[i - 1]!), `${serials}`)
  }
  young.serve('only-here', 'y.')
  const last = young.serve('h')
  old.file.close()
  young.file.close()
  const next = start(at, clock)
  t.ok(isSerialAfter(next.serve('i'), last))
  t.ok(next.file.knows('y.'), 'zones that only one of them had are kept')
  t.strictSame([...old.lines, ...young.lines, ...next.lines], [])
})

const turn = fc.record({
  who: fc.nat(1),
  count: fc.integer({ min: 1, max: 12 }),
  waits: fc.boolean(),
})

t.test('whichever of two processes writes when, no serial goes back', async (t) => {
  const at = path(t)
  const property = fc.asyncProperty(fc.array(turn, { maxLength: 20 }), async (turns) => {
    rmSync(at, { force: true })
    const clock = new FakeClock()
    const runs = [start(at, clock), start(at, clock)]
    let last: number | undefined
    let content = 0
    const isLater = (serial: number): boolean => {
      const isGood = last === undefined || isSerialAfter(serial, last)
      last = serial
      return isGood
    }
    for (const { who, count, waits } of turns) {
      for (let i = 0; i < count; i++) if (!isLater(runs[who]!.serve(`d${content++}`))) return false
      if (waits) for (const run of runs) await run.pass(1000)
      // One of them is killed, and comes again.
      else if (count === 1) runs[who] = start(at, clock)
    }
    for (const run of runs) run.file.close()
    return isLater(start(at, clock).serve('last'))
  })
  await fc.assert(property, { seed: 11, numRuns: 60 })
})

t.test('a file that another process has taken is not written any more', async (t) => {
  const at = path(t)
  const run = start(at)
  run.serve('a')
  writeFileSync(at, 'root:x:0:0\n')
  run.serve('b')
  run.file.close()
  t.equal(readFileSync(at, 'utf8'), 'root:x:0:0\n')
  t.match(run.lines, [/other content; the file is not replaced/])
})

t.test('a torn file is logged, ignored and replaced', async (t) => {
  const at = path(t)
  start(at).serve('a')
  const whole = readFileSync(at, 'utf8')
  writeFileSync(at, whole.slice(0, -9))
  t.match(checkStateFile(at, SERIALS), /incomplete/)
  const run = start(at)
  t.match(run.lines, [/serials: .* is not used: it is incomplete.*will be replaced/])
  run.serve('a')
  t.equal(readFileSync(at, 'utf8'), whole)
})

t.test('a file of another process is not written', async (t) => {
  const at = path(t)
  writeFileSync(at, 'root:x:0:0\n')
  const run = start(at)
  t.match(run.lines, [/other content; the file is not replaced; remove it or name another one/])
  run.serve('a')
  run.file.close()
  t.equal(readFileSync(at, 'utf8'), 'root:x:0:0\n')
  t.match(checkStateFile(at, SERIALS), /other content/)
})

t.test('a failing disk is logged once, and retried', async (t) => {
  const directory = join(t.testdir({}), 'gone')
  const at = join(directory, 'serials')
  t.match(checkStateFile(at, SERIALS), /is not a directory/)
  const run = start(at)
  run.serve('a')
  run.serve('b')
  t.match(run.lines, [/serials in .* cannot be written: ENOENT/])
  mkdirSync(directory)
  t.equal(checkStateFile(at, SERIALS), '')
  await run.pass(10_000)
  t.ok(existsSync(at))
  t.match(run.lines.slice(1), [/serials in .* can be written again/])
})

t.test('a used-up reservation is followed by another', async (t) => {
  const at = path(t)
  const run = start(at)
  let last = 0
  for (let i = 0; i < 2 * RESERVED_COMMITS; i++) last = run.serve(`d${i}`)
  const after = start(at).serve('other')
  t.ok(isSerialAfter(after, last), `${after} comes after ${last}`)
})
