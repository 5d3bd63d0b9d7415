import t from 'tap'
import { createLogger } from '../../src/base/telemetry/log.ts'
import { Refusals } from '../../src/peering/refusals.ts'
import { FakeClock } from '../support/setup.ts'

const LINES_MAX = 10
const WINDOW_MS = 60_000

function setUp() {
  const lines: string[] = []
  const clock = new FakeClock()
  const log = createLogger(
    '',
    (line) => lines.push(line),
    () => false,
  )
  return { refusals: new Refusals({ peer: 'p:53', log, clock }), lines, clock }
}

t.test('a problem is logged once, and counted as long as it lasts', async (t) => {
  const { refusals, lines } = setUp()
  refusals.note('a', ['a: bad\u001b'])
  refusals.note('a', ['a: bad\u001b'])
  t.strictSame(lines, ['[WARNING] peer p:53: refused: a: bad\\x1b'])
  t.equal(refusals.count, 1)
  t.strictSame(refusals.of('a'), ['a: bad\u001b'])
  refusals.note('b', ['b: one', 'b: two'])
  t.equal(refusals.count, 3)
  refusals.note('a', [])
  t.equal(refusals.count, 2)
  t.strictSame(refusals.of('a'), [])
  refusals.clear()
  t.equal(refusals.count, 0)
})

t.test('a flood of problems is logged in a few lines, and uses bounded memory', async (t) => {
  const { refusals, lines, clock } = setUp()
  for (let i = 0; i < 10_000; i++) refusals.note(`h${i}`, [`h${i}: bad`])
  t.equal(lines.length, LINES_MAX)
  t.equal(refusals.count, 2000)
  clock.monotonicMs += WINDOW_MS
  refusals.note('x', ['x: bad'])
  t.strictSame(lines.slice(LINES_MAX), [
    '[WARNING] peer p:53: 9990 more refusals',
    '[WARNING] peer p:53: refused: x: bad',
  ])
})
