import t from 'tap'
import { FaultLog } from '../../src/telemetry/fault-log.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { FakeClock } from '../support/setup.ts'

const TOLD_MAX = 100
const TOLD_PERIOD_MS = 10 * 60_000

function setUp() {
  const lines: string[] = []
  const log = createLogger(
    '',
    (line) => lines.push(line),
    () => false,
  )
  const clock = new FakeClock()
  return { lines, clock, faults: new FaultLog(log, clock) }
}

t.test('a fault is told once for as long as it lasts', async (t) => {
  const { lines, faults } = setUp()
  faults.report('a', 'no port')
  faults.report('a', 'no port')
  t.equal(lines.length, 1)
  faults.report('a', 'no host')
  t.equal(lines.length, 2, 'another one')
  faults.clear('a')
  faults.report('a', 'no host')
  t.equal(lines.length, 3, 'one that was gone')
})

// After a hundred faults nothing was ever told again.
t.test('however many faults there were, later ones are told', async (t) => {
  const { lines, faults, clock } = setUp()
  for (let i = 0; i < TOLD_MAX + 30; i++) faults.report(`${i}`, `fault ${i}`)
  t.equal(lines.length, TOLD_MAX, 'not too many at a time')
  clock.pass(TOLD_PERIOD_MS)
  faults.report('0', 'fault 0')
  t.equal(lines.length, TOLD_MAX, 'what was told is known')
  faults.report(`${TOLD_MAX}`, `fault ${TOLD_MAX}`)
  t.match(lines.slice(TOLD_MAX), [/and 30 more faults/, new RegExp(`fault ${TOLD_MAX}`)])
})
