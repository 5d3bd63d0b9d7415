import { join } from 'node:path'
import t, { type Test } from 'tap'
import { QUERY_TAP } from '../../../src/plugin/query-tap.ts'
import type { Transaction } from '../../../src/plugin/transaction.ts'
import { dnstap } from '../../../src/plugins/dnstap/setup.ts'
import { DataChannel } from '../../../src/server/thread-channel.ts'
import { selfSigned } from '../../support/certificate.ts'
import { control, SinkDouble } from '../../support/dnstap-sink.ts'
import { FakeTimers, NO_HOOKS, SetUp } from '../../support/setup.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { type Question, transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'

const REPLY = Buffer.from('0123456789abcdef')
const [STOP, READY, START] = [3, 4, 2]

/** A query whose reply was sent; `octets`: of the reply. */
function see(setUp: SetUp, question: Question, octets: number = REPLY.length): Transaction {
  const tx = transaction({ startedMs: 1000.25, ...question })
  tx.out = REPLY
  tx.finishedMs = 1001.5
  setUp.block.shared.find(QUERY_TAP)!.see(tx, octets)
  return tx
}

async function started(t: Test, corefile: string, timers = new FakeTimers()): Promise<SetUp> {
  const setUp = new SetUp(dnstap, corefile, undefined, { timers })
  await setUp.start()
  t.teardown(() => setUp.stop())
  return setUp
}

async function sinkAt(t: Test, ...behaviour: ConstructorParameters<typeof SinkDouble>[1][]) {
  const sink = new SinkDouble(t, behaviour[0])
  return { sink, endpoint: `tcp://127.0.0.1:${await sink.listen()}` }
}

t.test('messages of a query and its reply', async (t) => {
  const { sink, endpoint } = await sinkAt(t)
  const setUp = await started(
    t,
    `dnstap ${endpoint} full {\nidentity me\nversion two\nextra more\n}\n`,
  )
  const tx = see(setUp, { name: 'www.example.org.', from: '192.0.2.1', port: 5353 })
  see(setUp, { name: 'a.example.org.', from: '2001:db8::1', to: '::1', tcp: true }, 0)
  await until(() => sink.frames.length === 3, 'three messages')
  const [query, reply, unanswered] = sink.messages()
  const outer = {
    1: Buffer.from('me'),
    2: Buffer.from('two'),
    3: Buffer.from('more'),
    15: 1,
  }
  for (const message of [query, reply]) t.match(Object.fromEntries(message!.outer), outer)
  const both = {
    2: 1,
    3: 1,
    4: Buffer.from([192, 0, 2, 1]),
    5: Buffer.from([127, 0, 0, 53]),
    6: 5353,
    7: 53,
    // The clock is at 1_700_000_000_000 ms when the monotonic one is at 1000 ms.
    8: 1_700_000_000,
    9: 250_000,
  }
  t.strictSame(Object.fromEntries(query!.inner), {
    ...both,
    1: 5,
    10: Buffer.from(tx.query.packet.subarray(0, tx.query.packetOctets)),
  })
  t.strictSame(Object.fromEntries(reply!.inner), {
    ...both,
    1: 6,
    12: 1_700_000_000,
    13: 1_500_000,
    14: REPLY,
  })
  const ipv6 = { 1: 5, 2: 2, 3: 2, 5: Buffer.from(`${'00'.repeat(15)}01`, 'hex') }
  t.match(Object.fromEntries(unanswered!.inner), ipv6, 'IPv6, TCP, no reply')
  await setUp.stop()
  t.strictSame(sink.controls, [READY, START, STOP])
  t.equal(await setUp.metric(`sextant_dnstap_messages_total{endpoint="${endpoint}"}`), 3)
})

t.test('without full, messages have no DNS messages; metadata is in extra', async (t) => {
  const { sink, endpoint } = await sinkAt(t)
  const setUp = await started(t, `dnstap ${endpoint} {\nextra "in {/a/b}, {/a/c}"\n}`)
  setUp.block.metadata.isEnabled = true
  setUp.block.metadata.providers.set('a/b', () => 'Köln')
  see(setUp, { name: 'www.example.org.' })
  await until(() => sink.frames.length === 2, 'two messages')
  for (const { outer, inner } of sink.messages()) {
    t.equal(String(outer.get(3)), 'in Köln, -')
    t.notOk(inner.has(10) || inner.has(14))
  }
})

t.test('endpoints', async (t) => {
  const path = join(temporaryDirectory(t), 'sink')
  const unix = new SinkDouble(t)
  await unix.listen(path)
  const tls = new SinkDouble(t, { tls: selfSigned('localhost') })
  const port = await tls.listen()
  const setUp = await started(
    t,
    `dnstap ${path}\ndnstap unix://${path}\ndnstap tls://127.0.0.1:${port} {\nskipverify\n}`,
  )
  see(setUp, { name: 'www.example.org.' })
  await until(() => unix.frames.length === 4 && tls.frames.length === 2, 'messages at each sink')
})

t.test('a sink that does not accept', async (t) => {
  const table = [
    {
      name: 'another content type',
      sink: { accepts: 'text/plain' },
      want: /does not accept protobuf:dnstap.Dnstap, only text\/plain/,
    },
    {
      name: 'another protocol',
      sink: { reply: Buffer.from('HTTP/1.1 400 Bad Request\r\n') },
      want: /the sink does not speak Frame Streams/,
    },
    { name: 'FINISH at once', sink: { reply: control(5, '') }, want: /the sink finished/ },
  ]
  for (const { name, sink, want } of table) {
    const { endpoint } = await sinkAt(t, sink)
    const setUp = await started(t, `dnstap ${endpoint}`)
    await until(() => setUp.lines.length > 0, name)
    t.match(setUp.lines, [want], name)
  }
  const { cert, key } = selfSigned('localhost')
  const unverified = new SinkDouble(t, { tls: { cert, key } })
  const port = await unverified.listen()
  const setUp = await started(t, `dnstap tls://127.0.0.1:${port}`)
  await until(() => setUp.lines.length > 0, 'a certificate that is not verified')
  t.match(setUp.lines, [/no connection to tls:.*, trying again: .*self-signed certificate/])
})

t.test('a sink that does not reply', async (t) => {
  const timers = new FakeTimers()
  const { sink, endpoint } = await sinkAt(t, { reply: Buffer.alloc(0) })
  const setUp = await started(t, `dnstap ${endpoint}`, timers)
  await until(() => sink.controls.length === 1, 'READY')
  await timers.advance(4000)
  t.match(setUp.lines, [/the sink did not accept in 4 s/])
})

t.test('a sink that closes: messages wait, and are sent after it is back', async (t) => {
  const timers = new FakeTimers()
  const path = join(temporaryDirectory(t), 'sink')
  const first = new SinkDouble(t)
  await first.listen(path)
  const setUp = await started(t, `dnstap ${path}`, timers)
  await until(() => setUp.lines.length === 1, 'a connection')
  first.close()
  await until(() => setUp.lines.length === 2, 'its end')
  see(setUp, { name: 'www.example.org.' })
  await timers.advance(1000)
  await until(() => timers.count > 1, 'another attempt')
  const second = new SinkDouble(t)
  await second.listen(path)
  await until(async () => {
    await timers.advance(15_000)
    return second.frames.length === 2
  }, 'the messages')
  // A connection with octets that the sink has not read ends with a reset.
  const ended = /trying again: (?:the sink closed the connection|read ECONNRESET)/
  t.match(setUp.lines.slice(0, 2), [/connected to/, ended])
  t.equal(await setUp.metric(`sextant_dnstap_lost_messages_total{endpoint="${path}"}`), undefined)
})

t.test('the queue is bounded, and losses are counted and logged', async (t) => {
  const timers = new FakeTimers()
  const path = join(temporaryDirectory(t), 'none')
  const setUp = await started(t, `dnstap ${path}`, timers)
  const tx = see(setUp, { name: 'www.example.org.' })
  const tap = setUp.block.shared.find(QUERY_TAP)!
  for (let i = 0; i < 5009; i++) tap.see(tx, REPLY.length)
  const series = `sextant_dnstap_lost_messages_total{endpoint="${path}"}`
  t.equal(await setUp.metric(series), 20, '10 000 messages wait')
  await timers.advance(10_000)
  t.ok(setUp.lines.some((line) => /lost 20 messages/.test(line)))
  await setUp.stop()
  t.equal(await setUp.metric(series), 10_020, 'at the end, all are lost')
})

t.test(
  'a sink that does not read: losses are counted, and the end does not wait for it',
  async (t) => {
    const timers = new FakeTimers()
    const { sink, endpoint } = await sinkAt(t, { isStuck: true })
    const setUp = await started(t, `dnstap ${endpoint} full`, timers)
    await until(() => sink.controls.length === 2, 'START')
    const lost = () => setUp.metric(`sextant_dnstap_lost_messages_total{endpoint="${endpoint}"}`)
    const tx = see(setUp, { name: 'www.example.org.', tcp: true })
    tx.out = new Uint8Array(60_000)
    const tap = setUp.block.shared.find(QUERY_TAP)!
    await until(async () => {
      for (let i = 0; i < 100; i++) tap.see(tx, tx.out.length)
      return ((await lost()) ?? 0) > 0
    }, 'losses')
    const stopped = setUp.stop()
    await timers.advance(1000)
    await stopped
    t.equal(sink.frames.length, 0)
  },
)

t.test('a data thread whose ring has no room counts losses', async (t) => {
  const counts: Float64Array[] = []
  const announce = (_index: number, _labels: unknown, counters: Float64Array): void => {
    counts.push(counters)
  }
  const channel = new DataChannel({ ...NO_HOOKS, announce })
  const setUp = new SetUp(dnstap, 'dnstap /tmp/a\ndnstap /tmp/b', undefined, { channel })
  see(setUp, { name: 'www.example.org.' })
  see(setUp, { name: 'www.example.org.' }, 0)
  t.strictSame([...counts[0]!], [3, 3], 'messages of each line')
})
