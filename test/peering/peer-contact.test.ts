import t from 'tap'
import { PeerContact } from '../../src/peering/peer-contact.ts'
import { recordLog } from '../support/recorded-log.ts'
import { FakeClock } from '../support/setup.ts'

const KEPT = 3

t.test('what is known of a peer after each event', (t) => {
  const clock = new FakeClock()
  const { lines, log } = recordLog()
  const contact = new PeerContact({ peer: 'p', log, clock })
  const startMs = clock.monotonic()
  const secondsOf = (ms: number): number => (ms - startMs) / 1000
  const never = -Infinity
  const fails = (reason: string) => () => contact.fail(reason, KEPT)
  const asks = (fault: string) => () => contact.noteHost(fault)
  const confirms = () => contact.confirm()
  const table: readonly {
    does: string
    act: () => void
    isUp: boolean
    seen: number
    answered?: number
    failures: number
    log?: RegExp
  }[] = [
    { does: 'nothing', act: () => {}, isUp: false, seen: never, failures: 0 },
    {
      does: 'fails',
      act: fails('timeout'),
      isUp: false,
      seen: never,
      failures: 1,
      log: /p: timeout; its 3 endpoints are kept/,
    },
    { does: 'fails alike', act: fails('timeout'), isUp: false, seen: never, failures: 2 },
    {
      does: 'answers',
      act: () => contact.noteAnswer(),
      isUp: false,
      seen: never,
      answered: 3,
      failures: 2,
    },
    { does: 'confirms', act: confirms, isUp: true, seen: 4, failures: 2, log: /p answers again/ },
    {
      does: 'does not answer for a host',
      act: asks('SERVFAIL'),
      isUp: false,
      seen: 4,
      failures: 3,
      log: /query for a host failed: SERVFAIL/,
    },
    { does: 'confirms its serial', act: confirms, isUp: false, seen: 6, failures: 3 },
    { does: 'answers for a host', act: asks(''), isUp: true, seen: 6, failures: 3 },
    {
      does: 'fails at a host too soon for a line',
      act: asks('x'),
      isUp: false,
      seen: 6,
      failures: 4,
    },
  ]
  for (const { does, act, isUp, seen, answered = seen, failures, log } of table) {
    lines.length = 0
    act()
    t.equal(contact.isUp, isUp, does)
    t.equal(secondsOf(contact.seenMs), seen, does)
    t.equal(secondsOf(contact.answerMs), answered, does)
    t.equal(contact.failures, failures, does)
    t.equal(lines.length, log === undefined ? 0 : 1, does)
    if (log !== undefined) t.match(lines.join(), log)
    clock.pass(1000)
  }
  t.end()
})

t.test('a peer that an earlier process saw is not up', (t) => {
  const clock = new FakeClock()
  const contact = new PeerContact({ peer: 'p', log: recordLog().log, clock })
  contact.recall(clock.monotonic() - 5000)
  t.strictSame(
    [contact.isUp, contact.seenMs, contact.seenTimeMs],
    [false, clock.monotonic() - 5000, clock.now() - 5000],
  )
  t.end()
})
