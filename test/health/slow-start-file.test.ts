import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ResourceRegistry } from '../../src/base/resource-registry.ts'
import { acquireSlowStart } from '../../src/health/acquire-health.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'
import { SLOW_START_STEPS } from '../support/slow-start-share.ts'
import { recordOf, TestSource, tableOf } from './stage.ts'

const DURATION_MS = 100_000
const STEP_MS = DURATION_MS / SLOW_START_STEPS
const up = recordOf('a', ['192.0.2.1=10', '192.0.2.2=10'])
const down = { ...up, down: ['192.0.2.1'] }

/** One process after another, each with a clock that starts anew. */
function start(path: string, wallMs: number, source = new TestSource()) {
  const clock = new FakeClock()
  clock.nowMs = wallMs
  const timers = new FakeTimers()
  const lines: string[] = []
  const note = (text: string): void => void lines.push(text)
  const log = { debug: note, info: note, warning: note, error: note }
  const table = tableOf(source, { clock, timers, log })
  const options = { source, table, durationMs: DURATION_MS, clock, timers, log }
  const { item, release } = acquireSlowStart('test', options, path, new ResourceRegistry())
  const pass = async (milliseconds: number): Promise<void> => {
    clock.monotonicMs += milliseconds
    clock.nowMs += milliseconds
    await timers.advance(milliseconds)
  }
  const units = () => {
    const record = source.find('default/a')
    const isDown = source.health.healthOf('default/a').down.length > 0
    if (record === undefined || isDown) return []
    return item.slowStartOf(record).map((rising) => rising.units)
  }
  return { source, release, pass, units, lines }
}

/** A process that ended, or died, three and a half steps after an address came back. */
async function riseThree(path: string, isKilled: boolean): Promise<void> {
  const source = new TestSource()
  source.put(down)
  const { pass, units, release } = start(path, 1_000_000, source)
  source.put(up)
  for (let step = 0; step < 3; step++) await pass(STEP_MS)
  t.strictSame(units(), [7])
  await pass(STEP_MS / 2)
  const text = isKilled ? readFileSync(path) : undefined
  release()
  if (text !== undefined) writeFileSync(path, text)
}

const AT_MS = 1_000_000 + 3.5 * STEP_MS
const CASES = [
  { name: 'at once', wallMs: AT_MS, want: [7] },
  { name: 'two steps later', wallMs: AT_MS + 2 * STEP_MS, want: [11] },
  { name: 'when it would be over', wallMs: AT_MS + DURATION_MS, want: [] },
  { name: 'with a clock that was set back for a year', wallMs: AT_MS - 3e10, want: [7] },
  { name: 'with a clock that was set forward for a year', wallMs: AT_MS + 3e10, want: [] },
]

for (const { name, wallMs, want } of CASES) {
  for (const isKilled of [false, true]) {
    t.test(`a restart ${name}, ${isKilled ? 'killed' : 'stopped'}`, async (t) => {
      const path = join(t.testdir({}), 'rising')
      await riseThree(path, isKilled)
      const source = new TestSource()
      source.put(up)
      const { units, pass, release } = start(path, wallMs, source)
      t.strictSame(units(), want)
      for (let step = 0; step < SLOW_START_STEPS; step++) await pass(STEP_MS)
      t.strictSame(units(), [], 'it ends')
      release()
    })
  }
}

t.test(
  'a record that comes in after the start goes on, one that is down then begins anew',
  async (t) => {
    const path = join(t.testdir({}), 'rising')
    await riseThree(path, false)
    const { source, units, pass, release } = start(path, AT_MS)
    await pass(1000)
    source.put(up)
    t.strictSame(units(), [7])
    source.put(down)
    t.strictSame(units(), [])
    source.put(up)
    t.strictSame(units(), [1])
    release()
  },
)

t.test('a torn file is done without', async (t) => {
  const path = join(t.testdir({}), 'rising')
  await riseThree(path, false)
  writeFileSync(path, readFileSync(path, 'utf8').slice(0, -10))
  const source = new TestSource()
  source.put(up)
  const { units, lines, release } = start(path, AT_MS, source)
  t.strictSame(units(), [])
  t.match(lines[0], /slow starts: .* is not used: .*every address has its full weight/)
  release()
})
