import { spawn } from 'node:child_process'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { beginProgress, setProgress } from '../../src/base/telemetry/progress.ts'
import { progressBars } from '../../src/cli/progress-bar.ts'
import { readDirectoryOnce } from '../../src/sources/manifests/read-once.ts'
import { needs } from '../support/peer.ts'
import { root } from '../support/server.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'
import { until } from '../support/until.ts'

const ESCAPE = '\x1b'

/** A terminal on which time passes as the test wants. */
function open() {
  const clock = new FakeClock()
  const timers = new FakeTimers()
  const written: string[] = []
  const now = (): number => clock.monotonic()
  const begin = progressBars({ write: (text) => written.push(text), now, timers })
  const pass = (milliseconds: number): Promise<void> => {
    clock.pass(milliseconds)
    return timers.advance(milliseconds)
  }
  /** What was drawn since the last call, without what moves the cursor and erases. */
  const drawn = (): string[] =>
    written.splice(0).map((text) => text.replaceAll('\r', '').replaceAll(`${ESCAPE}[K`, ''))
  return { clock, timers, begin, pass, drawn, written }
}

t.test('work of less than a second is not shown', async (t) => {
  const { begin, pass, written, timers } = open()
  const progress = begin('records')
  progress.at(1, 2)
  await pass(999)
  progress.at(2, 2)
  progress.end()
  t.strictSame(written, [])
  t.equal(timers.count, 0, 'its timer has ended')
})

t.test('longer work is a bar, a count or a time', async (t) => {
  const cases: readonly [what: string, done: number, total: number, want: string][] = [
    ['records', 1, 4, 'records [#####               ]  25 %'],
    ['records', 9, 4, 'records [####################] 100 %'],
    ['records', 0, 4, 'records [                    ]   0 %'],
    ['octets:', 4711, 0, 'octets: 4711'],
    ['zone', 0, 0, 'zone 1 s'],
    [`/a/${'b'.repeat(90)}`, 0, 0, `…${'b'.repeat(55)} 1 s`],
    [`a${ESCAPE}[2J`, 0, 0, 'a\\x1b[2J 1 s'],
  ]
  for (const [what, done, total, want] of cases) {
    const { begin, clock, drawn } = open()
    const progress = begin(what)
    clock.pass(1000)
    progress.at(done, total)
    t.strictSame(drawn(), [want])
    progress.end()
    t.strictSame(drawn(), [''], 'it is erased')
  }
})

t.test('it is drawn ten times a second, also if nothing calls', async (t) => {
  const { begin, clock, pass, drawn } = open()
  const progress = begin('zone')
  for (let i = 0; i < 3000; i++) {
    clock.pass(1)
    progress.at(0, 0)
  }
  t.equal(drawn().length, 21)
  await pass(100)
  t.strictSame(drawn(), ['zone 3 s'])
  progress.end()
})

t.test('of work within other work, the outer one is shown', async (t) => {
  const { begin, clock, drawn } = open()
  const outer = begin('outer')
  clock.pass(2000)
  const inner = begin('inner')
  inner.at(1, 2)
  inner.end()
  t.strictSame(drawn(), [])
  outer.at(1, 0)
  outer.end()
  const next = begin('next')
  clock.pass(2000)
  next.at(1, 0)
  t.strictSame(drawn(), ['outer 1', '', 'next 1'])
  next.end()
})

t.test('manifests are read with a bar', async (t) => {
  const { begin, clock, drawn } = open()
  setProgress((what) => {
    const progress = begin(what)
    // Each part takes a second.
    const at = (done: number, total: number): void => {
      clock.pass(1000)
      progress.at(done, total)
    }
    return { ...progress, at }
  })
  t.teardown(() => setProgress(undefined))
  const list = (count: number): string => 'kind: ConfigMap\napiVersion: v1\n---\n'.repeat(count)
  const one = t.testdir({ 'one.yaml': list(4), few: { 'a.yaml': list(1), 'b.yaml': list(1) } })
  await readDirectoryOnce(join(one, 'few'))
  t.match(drawn(), [/few \[ {20}\] {3}0 %/, /few \[#{10} {10}\] {2}50 %/, ''])
  await readDirectoryOnce(one)
  t.equal(drawn().at(-1), '', 'erased')
  setProgress(undefined)
  beginProgress('nothing').end()
  t.strictSame(drawn(), [])
})

t.test('a transfer shows its octets on a terminal', needs('script'), async (t) => {
  const sockets: Socket[] = []
  // The start of a message, and no more.
  const primary = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    socket.once('data', () => socket.write(Uint8Array.of(1, 0, 1, 2, 3)))
  })
  t.teardown(() => primary.close())
  await new Promise<void>((resolve) => primary.listen(0, '127.0.0.1', resolve))
  const { port } = primary.address() as { port: number }
  const program = `"${process.execPath}" dist/main.js query example.org AXFR @127.0.0.1 -p ${port}`
  const env = { PATH: process.env.PATH, TERM: 'xterm' }
  const command = `${program} +time=60 >/dev/null`
  const child = spawn('script', ['-qec', command, '/dev/null'], { cwd: root, env })
  t.teardown(() => child.kill())
  let shown = ''
  child.stdout.on('data', (text) => (shown += text))
  const ended = new Promise((resolve) => child.on('close', resolve))
  await until(() => shown.includes('octets from 127.0.0.1: 5'), 'the octets')
  for (const socket of sockets) socket.destroy()
  await ended
  t.match(shown.slice(shown.lastIndexOf('octets from')), `\r${ESCAPE}[K`)
})
