import t, { type Test } from 'tap'
import { QUERY_TAP } from '../../../src/plugin/query-tap.ts'
import { trace } from '../../../src/plugins/trace/setup.ts'
import { DataChannel } from '../../../src/server/thread-channel.ts'
import { FakeTimers, NO_HOOKS, SetUp } from '../../support/setup.ts'
import { TraceCollector } from '../../support/trace-collector.ts'
import { lonelyServer, type Question, refill, transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'

/** What a query that took 1.5 ms has. */
const TIMES = { startedMs: 1000.25 }
const WWW: Question = { name: 'WWW.Example.org.', zone: 'example.org.', ...TIMES }

interface Case {
  readonly collector: TraceCollector
  readonly setUp: SetUp
  readonly timers: FakeTimers
}

async function started(t: Test, kind: string, properties = ''): Promise<Case> {
  const collector = new TraceCollector(t)
  const port = await collector.listen()
  const timers = new FakeTimers()
  const corefile = `trace ${kind} 127.0.0.1:${port} {\n${properties}\n}`
  // Identifiers differ.
  let random = 0
  const next = () => (random = (random + 0.618) % 1)
  const setUp = new SetUp(trace, corefile, undefined, { timers, random: next })
  await setUp.start()
  setUp.handler()
  t.teardown(() => setUp.stop())
  return { collector, setUp, timers }
}

/** A query of the block that was answered. */
function see({ setUp }: Case, question: Question, rcode = 0, octets = 100): void {
  const tx = transaction(question)
  tx.finishedMs = 1001.75
  tx.response.rcode = rcode
  tx.response.answeredBy = 'file'
  setUp.block.shared.find(QUERY_TAP)!.see(tx, octets)
}

for (const kind of ['zipkin', 'otlp']) {
  t.test(`spans of queries: ${kind}`, async (t) => {
    const of = await started(t, kind, 'service me')
    see(of, { ...WWW, from: '192.0.2.1', port: 5353, view: 'inside' })
    see(of, { ...WWW, type: 28, from: '2001:db8::1', to: '::1', tcp: true }, 3)
    see(of, { ...WWW, type: 16 }, 0, 0)
    await of.timers.advance(1000)
    await until(() => of.collector.spans.length === 3, 'three spans')
    const [first, second, third] = of.collector.spans
    t.match(first, { name: 'servedns', service: 'me', error: '' })
    t.match(first!.traceId, /^[0-9a-f]{32}$/)
    t.match(first!.spanId, /^[0-9a-f]{16}$/)
    t.equal(new Set(of.collector.spans.map(({ traceId }) => traceId)).size, 3)
    t.ok(Math.abs(first!.startMs - (of.setUp.clock.nowMs - 1.5)) < 0.002)
    t.ok(Math.abs(first!.durationMs - 1.5) < 0.002)
    t.match(first!.tags, {
      'coredns.io/name': 'www.example.org.',
      'coredns.io/type': 'A',
      'coredns.io/rcode': 'NOERROR',
      'coredns.io/proto': 'udp',
      'coredns.io/remote': '192.0.2.1',
      'sextant/server': 'dns://:53',
      'sextant/zone': 'example.org.',
      'sextant/view': 'inside',
      'sextant/plugin': 'file',
    })
    t.match(second!.tags, {
      'coredns.io/type': 'AAAA',
      'coredns.io/rcode': 'NXDOMAIN',
      'coredns.io/proto': 'tcp',
      'coredns.io/remote': '2001:db8::1',
    })
    t.notOk('coredns.io/rcode' in third!.tags, 'no reply')
    t.strictSame(of.setUp.lines, [])
  })
}

t.test('errors', async (t) => {
  const of = await started(t, 'zipkin')
  const tx = transaction(WWW)
  tx.response.rcode = 2
  // It is cut, and the rest of the entry is not overwritten.
  tx.response.error = 'ä'.repeat(2000)
  of.setUp.block.shared.find(QUERY_TAP)!.see(tx, 12)
  await of.timers.advance(1000)
  await until(() => of.collector.spans.length === 1, 'a span')
  t.equal(of.collector.spans[0]!.error, 'ä'.repeat(512))
})

t.test('names of the largest size', async (t) => {
  const of = await started(t, 'zipkin')
  const name = `${`${'\\007'.repeat(63)}.`.repeat(3)}${'\\007'.repeat(61)}.`
  see(of, { ...WWW, name, zone: name })
  await of.timers.advance(1000)
  await until(() => of.collector.spans.length === 1, 'a span')
  t.match(of.collector.spans[0]!.tags, { 'coredns.io/name': name, 'sextant/zone': name })
})

t.test('one of every N queries', async (t) => {
  const of = await started(t, 'zipkin', 'every 10')
  for (let i = 1; i <= 35; i++) see(of, { ...WWW, name: `${i}.example.org.` })
  await of.timers.advance(1000)
  await until(() => of.collector.spans.length === 3, 'spans')
  const names = of.collector.spans.map(({ tags }) => tags['coredns.io/name'])
  t.strictSame(names, ['10.example.org.', '20.example.org.', '30.example.org.'])
  t.notOk(new SetUp(trace, 'trace {\nevery 0\n}').block.shared.find(QUERY_TAP))
})

t.test('a backlog, and what is lost', async (t) => {
  const properties = 'zipkin_max_backlog_size 5\nzipkin_max_batch_size 5'
  const of = await started(t, 'zipkin', properties)
  of.collector.status = 500
  for (let i = 0; i < 20; i++) see(of, WWW)
  const page = await of.setUp.metrics.print()
  t.match(page, /sextant_trace_lost_spans_total\{endpoint="http:.*\/api\/v2\/spans"\} 15\n/)
  t.match(page, /sextant_trace_spans_total\{endpoint="http:.*\/api\/v2\/spans"\} 0\n/)
})

t.test('the identifier is metadata while the chain runs', async (t) => {
  const of = await started(t, 'zipkin', 'every 2')
  const { block } = of.setUp
  block.metadata.isEnabled = true
  block.metadata.read.add('trace/traceid')
  const read: string[] = []
  const handler = of.setUp.handler({
    name: 'below',
    serve: (tx) => {
      read.push(block.metadata.find('trace/traceid')!(tx))
      return 0
    },
  })
  const tx = transaction(WWW)
  const tap = block.shared.find(QUERY_TAP)!
  for (let i = 0; i < 4; i++) {
    await handler.serve(refill(tx, WWW))
    // As another thread answers, the tap does not see it here.
    if (i !== 1) tap.see(tx, 100)
  }
  const nested = transaction(WWW)
  nested.chainDepth = 1
  await handler.serve(nested)
  t.match(read, ['', /^[0-9a-f]{32}$/, '', /^[0-9a-f]{32}$/, ''])
  t.not(read[1], read[3])
  await of.timers.advance(1000)
  await until(() => of.collector.spans.length > 0, 'a span')
  t.strictSame(
    of.collector.spans.map(({ traceId }) => traceId),
    [read[3]],
  )
})

t.test('a data thread whose ring has no room counts losses', async (t) => {
  const counts: Float64Array[] = []
  const announce = (_index: number, _labels: unknown, counters: Float64Array): void => {
    counts.push(counters)
  }
  const channel = new DataChannel({ ...NO_HOOKS, announce })
  const setUp = new SetUp(trace, 'trace', undefined, { channel })
  const tx = transaction(WWW, lonelyServer)
  for (let i = 0; i < 3; i++) setUp.block.shared.find(QUERY_TAP)!.see(tx, 100)
  t.strictSame([...counts[0]!], [3])
})
