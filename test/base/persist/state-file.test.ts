import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { checkStateFile, StateFile, type StateKind } from '../../../src/base/persist/state-file.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import { until } from '../../support/until.ts'

const WHOLE = /^sextant things 1\n(?:thing \d+\n)*sha256 [0-9a-f]{64}\n$/

function kindOf(more: Partial<StateKind<readonly string[]>> = {}): StateKind<readonly string[]> {
  return {
    what: 'things',
    version: '1',
    octetsMax: 1_000_000,
    mode: 0o600,
    gapMs: 10_000,
    isLarge: true,
    contents: 'things',
    loss: 'there is nothing',
    scan: (lines) => (lines.every((line) => /^thing \d+$/.test(line)) ? lines : undefined),
    ...more,
  }
}

function setUp(t: Test, path: string, more: Partial<StateKind<readonly string[]>> = {}) {
  const clock = new FakeClock()
  const timers = new FakeTimers()
  const { lines, log } = recordLog()
  const things: string[] = []
  const kind = kindOf(more)
  const print = (): Iterable<string> => things.map((thing) => `${thing}\n`)
  const file = new StateFile({ path, kind, log, clock, timers, print })
  t.teardown(() => file.close())
  const pass = async (ms: number): Promise<void> => {
    clock.pass(ms)
    await timers.advance(ms)
  }
  const read = (): string => (existsSync(path) ? readFileSync(path, 'utf8') : '')
  return { file, things, lines, pass, read, timers, clock }
}

t.test('the state is readable after a restart, only by its owner', async (t) => {
  const path = join(t.testdir({}), 'things')
  const first = setUp(t, path)
  t.equal(first.file.open(), undefined)
  first.things.push('thing 1', 'thing 2')
  first.file.noteChange()
  await first.pass(1000)
  await until(() => WHOLE.test(first.read()), 'the file')
  t.equal(statSync(path).mode & 0o777, 0o600)
  t.strictSame(setUp(t, path).file.open(), ['thing 1', 'thing 2'])
  t.strictSame(first.lines, [])
})

t.test('a file is written at most as often as its kind defines', async (t) => {
  const path = join(t.testdir({}), 'things')
  const { file, things, pass, read } = setUp(t, path)
  things.push('thing 1')
  file.noteChange()
  await pass(1000)
  await until(() => file.writtenMs > 0 && read().includes('thing 1'), 'the file')
  things.push('thing 2')
  for (let i = 0; i < 9; i++) {
    file.noteChange()
    await pass(1000)
  }
  t.notMatch(read(), 'thing 2')
  await pass(1000)
  await until(() => read().includes('thing 2'), 'the second write')
})

t.test('a large one is written bit by bit, and is whole when it is closed meanwhile', async (t) => {
  const path = join(t.testdir({}), 'things')
  const { file, things, timers, read, clock } = setUp(t, path)
  for (let i = 0; i < 50_000; i++) things.push(`thing ${i}`)
  // Each look at the clock takes longer than a slice.
  clock.monotonic = () => (clock.monotonicMs += 10)
  file.noteChange()
  await timers.advance(1000)
  t.equal(read(), '', 'not yet')
  file.close()
  t.match(read(), WHOLE)
  t.equal(read().split('\n').length, 50_003)
  const stamp = statSync(path).mtimeMs
  await new Promise((resolve) => setTimeout(resolve, 20))
  t.equal(statSync(path).mtimeMs, stamp, 'what was under way gives up')
})

t.test('an invalid file is refused with the reason, and only our own is replaced', async (t) => {
  const whole = 'sextant things 1\nthing 1\n'
  const table = [
    { name: 'empty', text: '', reason: /empty/, isReplaced: true },
    { name: 'torn', text: whole, reason: /incomplete/, isReplaced: true },
    { name: 'torn early', text: 'sextant thi', reason: /incomplete/, isReplaced: true },
    { name: 'other content', text: 'zones\n', reason: /other content/, isReplaced: false },
    { name: 'another version', text: 'sextant things 9\n', reason: /version/, isReplaced: false },
  ]
  for (const { name, text, reason, isReplaced } of table) {
    const path = join(t.testdir({}), 'things')
    writeFileSync(path, text)
    const { file, things, lines, pass, read } = setUp(t, path)
    t.match(checkStateFile(path, kindOf()), reason, name)
    t.equal(file.open(), undefined, name)
    t.match(lines, [reason], name)
    t.equal(file.fault !== '', !isReplaced, `${name}: a lasting fault is reported`)
    things.push('thing 2')
    file.noteChange()
    await pass(1000)
    if (isReplaced) await until(() => WHOLE.test(read()), name)
    else file.close()
    t.equal(read() === text, !isReplaced, name)
  }
})

t.test('a link and a directory are refused', async (t) => {
  const directory = t.testdir({ target: '' })
  const link = join(directory, 'link')
  symlinkSync(join(directory, 'target'), link)
  t.match(checkStateFile(link, kindOf()), /not a regular file/)
  t.match(checkStateFile(directory, kindOf()), /not a regular file/)
  t.match(checkStateFile(join(directory, 'missing', 'x'), kindOf()), /not a directory/)
  t.equal(checkStateFile(join(directory, 'new'), kindOf()), '')
})

t.test('a folder that cannot be written is reported at the start, without a write', async (t) => {
  const root = t.testdir({ file: '' })
  const reason = (file: Pick<StateFile<unknown>, 'problems'>): string => {
    return file.problems.flatMap(({ problems }) => [...problems].map((one) => one.reason)).join()
  }
  for (const open of ['open', 'openInSlices'] as const) {
    const directory = join(root, open)
    const { file, lines, pass, read, timers } = setUp(t, join(directory, 'things'))
    await file[open]()
    t.match(lines, [/things in .* cannot be written: ENOENT/])
    t.match(
      reason(file),
      /^things in .*ENOENT.*; make it writable; otherwise, after a restart, there is nothing$/,
    )
    await pass(10_000)
    t.equal(lines.length, 1)
    mkdirSync(directory)
    await pass(10_000)
    t.match(lines.slice(1), [/things in .* can be written again/])
    t.equal(reason(file), '')
    t.equal(read(), '')
    t.equal(timers.count, 0, 'no more checks')
  }
  const good = setUp(t, join(root, 'good'))
  good.file.open()
  t.strictSame([good.lines, good.file.problems], [[], []])
  // The first write decides.
  const late = setUp(t, join(root, 'late', 'things'))
  late.file.open()
  mkdirSync(join(root, 'late'))
  late.file.noteChange()
  await late.pass(1000)
  await until(() => late.file.fault === '', 'the write')
  t.equal(late.lines.length, 2)
})

t.test('a failed write is logged once, and so is the next success', async (t) => {
  for (const isLarge of [true, false]) {
    const directory = join(t.testdir({}), 'late')
    const { file, lines, pass, read } = setUp(t, join(directory, 'things'), { isLarge })
    file.noteChange()
    for (let i = 0; i < 5; i++) await pass(10_000)
    t.match(lines, [/things in .* cannot be written: ENOENT/])
    t.match(file.fault, /ENOENT/)
    mkdirSync(directory)
    await pass(10_000)
    await until(() => WHOLE.test(read()), 'the file')
    await until(() => file.fault === '', 'the fault to be over')
    t.match(lines[1], /things in .* can be written again/)
  }
})
