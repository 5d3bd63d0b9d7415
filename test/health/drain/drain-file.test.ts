import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import { DrainFile } from '../../../src/health/drain/drain-file.ts'
import { CLUSTER_ONLY, DRAIN_CHECK_MS } from '../../../src/health/drain/drain-schedule.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'

const HOUR_MS = 3_600_000

function stage(t: Test, text?: string) {
  const path = join(t.testdir({}), 'drains')
  if (text !== undefined) writeFileSync(path, text)
  const clock = new FakeClock()
  const timers = new FakeTimers()
  const lines: string[] = []
  const log = createLogger(
    '',
    (line) => lines.push(line.replaceAll(path, 'drains')),
    () => false,
  )
  const file = new DrainFile({ path, clock, timers, log })
  t.teardown(() => file.close())
  const changes: string[] = []
  file.subscribe(({ begun, ended }) => {
    const print = (sign: string, drains: typeof begun) =>
      drains.map(({ selector }) => `${sign}${selector.text}`)
    changes.push([...print('+', begun), ...print('-', ended)].join(' '))
  })
  const pass = async (milliseconds = 2 * DRAIN_CHECK_MS): Promise<void> => {
    clock.pass(milliseconds)
    await timers.advance(milliseconds)
  }
  const put = (text: string): void => {
    writeFileSync(`${path}.new`, text)
    renameSync(`${path}.new`, path)
  }
  const drains = () => file.drains.map(({ selector }) => selector.text)
  return { path, file, clock, lines, changes, pass, put, drains }
}

t.test('a missing file has no drains; drains begin and end with the file', async (t) => {
  const { drains, put, pass, changes, lines, path } = stage(t)
  t.strictSame(drains(), [])
  put('site:a by=ops reason="two\\nlines"\nsite:b\n')
  await pass(DRAIN_CHECK_MS)
  t.strictSame(drains(), [], 'a file that was missing may still be written')
  await pass(DRAIN_CHECK_MS)
  t.strictSame(drains(), ['site:a', 'site:b'])
  put('site:b\nsite:c\n')
  await pass(DRAIN_CHECK_MS)
  t.strictSame(drains(), ['site:b', 'site:c'], 'a file that was replaced is complete')
  rmSync(path)
  await pass(DRAIN_CHECK_MS)
  t.strictSame(drains(), ['site:b', 'site:c'], 'an editor may be replacing it')
  await pass(DRAIN_CHECK_MS)
  t.strictSame(drains(), [])
  t.strictSame(changes, ['+site:a +site:b', '+site:c -site:a', '-site:b -site:c'])
  t.strictSame(lines, [
    '[INFO] drain begins: site:a by ops: two\\x0alines',
    '[INFO] drain begins: site:b',
    '[INFO] drain begins: site:c',
    '[INFO] drain ends: site:a by ops: two\\x0alines',
    '[INFO] drain ends: site:b',
    '[INFO] drain ends: site:c',
  ])
})

t.test('an invalid file keeps the last valid state', async (t) => {
  const { drains, put, pass, lines, changes, file } = stage(t, 'site:a\n')
  put('site:b\nsites:c\n')
  await pass()
  t.strictSame(drains(), ['site:a'])
  const reason =
    /^drain file \S*drains: "sites:c" is not a selector.*; the last valid state is kept$/
  t.match(file.problems, [{ place: /drains:2$/, object: /drains$/, reason }])
  t.equal(file.problems.length, 1)
  await pass()
  t.equal(lines.length, 2, 'it is logged once')
  t.match(lines[1], /^\[ERROR\] drain file drains: drains:2: .* the last valid state is kept$/)
  put('site:a\nsite:c\n')
  await pass()
  t.strictSame(drains(), ['site:a', 'site:c'])
  t.strictSame(file.problems, [])
  t.match(lines[2], /^\[INFO\] drain file drains is valid again$/)
  t.strictSame(changes, ['+site:c'])
})

t.test('the start uses the valid lines of an invalid file', async (t) => {
  const { drains, lines } = stage(t, 'site:a\nnonsense\nsite:b\nsite:a\n')
  t.strictSame(drains(), ['site:a', 'site:b'])
  t.match(lines[0], /drains:2: .*, and 1 more faults; these lines are not used$/)
})

t.test('a directory in its place is a fault', async (t) => {
  const { drains, path, pass, lines } = stage(t, 'site:a\n')
  rmSync(path)
  mkdirSync(path)
  await pass()
  t.strictSame(drains(), ['site:a'])
  t.match(lines[1], /it is not a regular file; the last valid state is kept/)
})

t.test('a file that is still written is not read', async (t) => {
  const { drains, path, pass } = stage(t, 'site:a\n')
  for (let i = 0; i < 5; i++) {
    appendFileSync(path, `site:b${i}`)
    await pass(DRAIN_CHECK_MS)
    t.strictSame(drains(), ['site:a'])
    appendFileSync(path, '\n')
  }
  await pass()
  t.equal(drains().length, 6)
})

t.test('a drain ends by the wall clock, whatever the clock does', async (t) => {
  const until = new Date(new FakeClock().now() + HOUR_MS).toISOString()
  const { drains, clock, pass, changes, lines } = stage(t, `site:a until=${until}\nsite:b\n`)
  await pass(HOUR_MS - 1)
  t.strictSame(drains(), ['site:a', 'site:b'])
  await pass(DRAIN_CHECK_MS)
  t.strictSame(drains(), ['site:b'])
  t.match(lines.at(-1), /drain ends: site:a until/)
  clock.nowMs -= HOUR_MS
  await pass(DRAIN_CHECK_MS)
  t.strictSame(drains(), ['site:a', 'site:b'], 'the clock was set back')
  clock.nowMs += 2 * HOUR_MS
  await pass(DRAIN_CHECK_MS)
  t.strictSame(drains(), ['site:b'])
  t.strictSame(changes, ['-site:a', '+site:a', '-site:a'])
})

t.test('an ended drain in the file does nothing', async (t) => {
  const { drains, lines } = stage(t, 'site:a until=2020-01-01T00:00:00Z\n')
  t.strictSame(drains(), [])
  t.strictSame(lines, [])
})

t.test('the log says of each drain what other sites learn of it', (t) => {
  const path = join(t.testdir({ drains: 'site:a\n' }), 'drains')
  const { lines, log } = recordLog()
  const file = new DrainFile({
    ...{ path, log, note: CLUSTER_ONLY },
    ...{ clock: new FakeClock(), timers: new FakeTimers() },
  })
  file.close()
  t.strictSame(lines, ['[INFO] drain begins: site:a; not exported to other sites'])
  t.end()
})
