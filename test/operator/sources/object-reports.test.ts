import t from 'tap'
import { ObjectReports } from '../../../src/operator/sources/object-reports.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { FakeClock } from '../../support/setup.ts'

const OF = { apiVersion: 'v1', kind: 'Service', namespace: 'shop', name: 'web', uid: '1' }

t.test('an object with thousands of faults', async (t) => {
  const { log, lines } = recordLog()
  const events: string[] = []
  const reports = new ObjectReports({
    events: { record: (_, { note }) => void events.push(note) },
    log,
    clock: new FakeClock(),
  })
  const report = (count: number): void => {
    const notes = Array.from({ length: count }, (_, i) => `fault ${i}`)
    reports.set('one', { of: OF, reason: 'PartIgnored', notes })
  }
  report(10_000)
  report(10_000)
  t.strictSame(events, ['fault 0', 'fault 1', 'fault 2', 'fault 3', 'fault 4'])
  t.equal(lines.length, 1)
  t.match(lines[0], /Service shop\/web: fault 0; fault 1; .*fault 4; and 9995 more$/)
  report(9_999)
  t.match(lines[1], /and 9994 more$/, 'other faults are reported')
  report(1)
  t.match(lines[2], /Service shop\/web: fault 0$/)
})
