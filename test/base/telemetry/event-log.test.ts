import t from 'tap'
import { EventLog } from '../../../src/base/telemetry/event-log.ts'
import { FakeClock } from '../../support/setup.ts'

const actor = { kind: 'record', name: 'default/www' } as const

t.test('ids increase, also over a restart', async (t) => {
  const clock = new FakeClock()
  const log = new EventLog(clock)
  t.strictSame(log.after(0, 10), [])
  for (let i = 0; i < 5000; i++) log.add({ actor })
  const ids = log.after(0, 5000).map(({ id }) => id)
  t.ok(ids.every((id, i) => Number.isSafeInteger(id) && id > (ids[i - 1] ?? 0)))
  clock.pass(10)
  const next = new EventLog(clock)
  next.add({ actor })
  t.ok(next.lastId > log.lastId)
  t.strictSame(next.after(log.lastId, 10).length, 1)
})

t.test('the log is bounded by number and by octets', async (t) => {
  const log = new EventLog(new FakeClock())
  for (let i = 0; i < 30_000; i++) log.add({ actor, text: String(i) })
  const few = log.after(0, 100_000)
  t.ok(few.length <= 10_000 && few.length >= 8_000, `${few.length} events`)
  t.equal(few.at(-1)?.text, '29999')
  for (let i = 0; i < 50; i++) log.add({ actor, text: 'x'.repeat(1024 * 1024) })
  const large = log.after(0, 100_000)
  t.ok(large.length <= 8, `${large.length} events of 1 MiB`)
  log.add({ actor, text: 'x'.repeat(20 * 1024 * 1024) })
  t.equal(log.after(0, 10).length, 1, 'the last event is kept')
})

t.test('a listener gets each event as one line', async (t) => {
  const log = new EventLog(new FakeClock())
  const lines: string[] = []
  const stop = log.subscribe((line) => lines.push(line))
  log.add({ actor, text: 'one\ntwo' })
  stop()
  log.add({ actor })
  t.equal(lines.length, 1)
  t.strictSame(JSON.parse(lines[0]!), log.after(0, 1)[0])
  t.notMatch(lines[0], '\n')
})

t.test('a line of the event file can not control a terminal', (t) => {
  const log = new EventLog(new FakeClock())
  const lines: string[] = []
  log.subscribe((line) => lines.push(line))
  const text = '\u001b[2J\u009b2J\u202e\u2028'
  log.add({ actor: { kind: 'drain', name: text } })
  t.notMatch(lines[0], /[\p{Cc}\u2028\u202e]/u)
  t.equal(JSON.parse(lines[0]!).actor.name, text)
  t.end()
})
