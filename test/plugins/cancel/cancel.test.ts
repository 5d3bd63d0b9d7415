import t from 'tap'
import { Rcode } from '../../../src/dns/iana/index.ts'
import { cancel } from '../../../src/plugins/cancel/setup.ts'
import { forward } from '../../../src/plugins/forward/setup.ts'
import { ScriptedServer } from '../../support/scripted-server.ts'
import { FakeTimers, SetUp, setupError } from '../../support/setup.ts'
import { answering, transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'

t.test('the deadline counts from the arrival of the query', async (t) => {
  const table = [
    { corefile: 'cancel', want: 6001 },
    { corefile: 'cancel 250ms', want: 1250 },
  ]
  for (const { corefile, want } of table) {
    let deadlineMs = 0
    const next = answering((tx) => {
      deadlineMs = tx.deadlineMs
      return 0
    })
    const handler = new SetUp(cancel, corefile).handler(next)
    const tx = transaction({ name: 'a.example.', startedMs: 1000 })
    t.equal(tx.deadlineMs, Number.POSITIVE_INFINITY)
    handler.serve(tx)
    t.equal(deadlineMs, want, corefile)
  }
})

t.test('syntax', async (t) => {
  const table = [
    { corefile: 'cancel 5', want: 'Corefile:1 - Error during parsing: invalid duration: "5"' },
    {
      corefile: 'cancel 0',
      want: 'Corefile:1 - Error during parsing: the duration must be above 0: "0"',
    },
    { corefile: 'cancel -1s', want: 'the duration must be above 0: "-1s"' },
    { corefile: 'cancel 1s 2s', want: "Wrong argument count or unexpected line ending after '2s'" },
    { corefile: 'cancel {\na\n}', want: "Corefile:2 - Error during parsing: unknown property 'a'" },
    { corefile: 'cancel\ncancel', want: 'Corefile:2 - Error during parsing: this plugin can only' },
  ]
  for (const { corefile, want } of table) t.match(setupError(cancel, corefile), want)
})

t.test('forward gives up at the deadline: SERVFAIL', async (t) => {
  const upstream = await ScriptedServer.openRaw(t, () => {})
  const timers = new FakeTimers()
  const corefile = `forward . ${upstream.address} {\nmax_fails 0\n}`
  const c = new SetUp(forward, corefile, undefined, { timers })
  await c.start()
  t.teardown(() => c.stop())
  const handler = new SetUp(cancel, 'cancel 300ms').handler(c.handler())
  const tx = transaction({ name: 'a.example.', startedMs: c.clock.monotonic() })
  const status = handler.serve(tx)
  await until(() => upstream.asked.length === 1, 'the query')
  c.clock.pass(300)
  await timers.advance(300)
  t.equal(await status, Rcode.SERVFAIL)
  t.equal(tx.response.error, 'no upstream replied in time')
  t.equal(upstream.asked.length, 1)
  // The query to the upstream goes on: another client may want its reply.
  await timers.advance(2000)
})
