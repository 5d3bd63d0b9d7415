import t from 'tap'
import { FaultLog } from '../../../src/base/telemetry/fault-log.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { FakeClock } from '../../support/setup.ts'

const LOGGED_MAX = 100
const TOLD_PERIOD_MS = 10 * 60_000

function setUp() {
  const { lines, log } = recordLog()
  const clock = new FakeClock()
  return { lines, clock, faults: new FaultLog(log, clock) }
}

t.test('a fault is logged once as long as it lasts', async (t) => {
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

// After a hundred faults nothing was ever logged again.
t.test('later faults are logged, however many there were before', async (t) => {
  const { lines, faults, clock } = setUp()
  for (let i = 0; i < LOGGED_MAX + 30; i++) faults.report(`${i}`, `fault ${i}`)
  t.equal(lines.length, LOGGED_MAX, 'not too many at a time')
  clock.pass(TOLD_PERIOD_MS)
  faults.report('0', 'fault 0')
  t.equal(lines.length, LOGGED_MAX, 'faults that were logged are known')
  faults.report(`${LOGGED_MAX}`, `fault ${LOGGED_MAX}`)
  t.match(lines.slice(LOGGED_MAX), [/and 30 more faults/, new RegExp(`fault ${LOGGED_MAX}`)])
})
