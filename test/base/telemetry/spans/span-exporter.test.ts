import t, { type Test } from 'tap'
import { OTLP } from '../../../../src/base/telemetry/spans/otlp.ts'
import type { Span } from '../../../../src/base/telemetry/spans/span.ts'
import {
  type ExportSettings,
  SpanExporter,
} from '../../../../src/base/telemetry/spans/span-exporter.ts'
import { ZIPKIN } from '../../../../src/base/telemetry/spans/zipkin.ts'
import { freePort } from '../../../support/free-port.ts'
import { recordLog } from '../../../support/recorded-log.ts'
import { FakeTimers } from '../../../support/setup.ts'
import { TraceCollector } from '../../../support/trace-collector.ts'
import { until } from '../../../support/until.ts'

const SPAN: Span = {
  traceId: '0123456789abcdef0123456789abcdef',
  spanId: '0123456789abcdef',
  name: 'servedns',
  kind: 'server',
  startMs: 1_700_000_000_000,
  durationMs: 1,
  attributes: {},
  error: '',
}
const SETTINGS = { name: 'C', format: ZIPKIN, service: 'me', backlogMax: 10, batchMax: 3 }

interface Case {
  readonly collector: TraceCollector
  readonly exporter: SpanExporter
  readonly timers: FakeTimers
  readonly lines: string[]
  readonly port: number
  sent: number
  lost: number
}

async function open(
  t: Test,
  settings: Partial<ExportSettings> = {},
  listens = true,
): Promise<Case> {
  const collector = new TraceCollector(t)
  const port = listens ? await collector.listen() : await freePort()
  const timers = new FakeTimers()
  const { log, lines } = recordLog()
  const url = new URL(`http://127.0.0.1:${port}/api/v2/spans`)
  const exporter = new SpanExporter(
    { ...SETTINGS, intervalMs: 1000, url, ...settings },
    {
      log,
      timers,
      seed: 1,
      sent: (spans) => {
        of.sent += spans
      },
      lost: (spans) => {
        of.lost += spans
      },
    },
  )
  const of: Case = { collector, exporter, timers, lines, port, sent: 0, lost: 0 }
  return of
}

function add({ exporter }: Case, count: number): void {
  for (let i = 0; i < count; i++) exporter.add(SPAN)
}

/** Lets time pass until the condition holds: slowly, so that a reply is never late by it. */
async function passUntil({ timers }: Case, done: () => boolean, what: string): Promise<void> {
  await until(async () => {
    await timers.advance(200)
    return done()
  }, what)
}

t.test('batches: at once if they are full, and otherwise after the interval', async (t) => {
  const of = await open(t)
  add(of, 8)
  await until(() => of.collector.batches.length === 2, 'two full batches')
  t.strictSame(of.collector.batches, [3, 3])
  await of.timers.advance(999)
  t.equal(of.collector.requests, 2)
  await passUntil(of, () => of.sent === 8, 'the rest')
  t.match(of.collector.spans, Array(8).fill({ traceId: SPAN.traceId, service: 'me' }))
  t.strictSame(of.lines, [])
  await of.exporter.stop()
  t.equal(of.lost, 0)
})

t.test('what waits is sent at the end', async (t) => {
  const of = await open(t)
  add(of, 2)
  await of.exporter.stop()
  t.strictSame(of.collector.batches, [2])
  add(of, 1)
  t.equal(of.lost, 1, 'not afterwards')
})

t.test(
  'a collector that is away: a line, a bounded backlog, and all that waited later',
  async (t) => {
    const of = await open(t, {}, false)
    add(of, 14)
    await passUntil(of, () => of.lines.length > 0, 'a line')
    t.match(of.lines, [/C accepts no spans, trying again: connect ECONNREFUSED/])
    t.equal(of.lost, 4)
    for (let i = 0; i < 50; i++) {
      add(of, 1)
      await of.timers.advance(1000)
    }
    t.equal(of.lines.length, 1, 'one line')
    await of.collector.listen(of.port)
    await passUntil(of, () => of.sent === 10, 'the backlog')
    t.equal(of.lost, 54)
    t.match(of.lines[1], /C accepts spans again: lost 50/)
  },
)

t.test('collectors that fail, and recover', async (t) => {
  const table = [
    { status: 500, want: /status 500/ },
    { status: 503, want: /status 503/ },
    { status: 429, want: /status 429/ },
    { status: 'close', want: /socket hang up/ },
    { status: 0, want: /no reply in 5 s/ },
    { status: 'upgrade', want: /no reply in 5 s/ },
  ] as const
  for (const { status, want } of table) {
    const of = await open(t)
    of.collector.status = status
    add(of, 3)
    await until(() => of.collector.requests > 0, `${status}: a request`)
    await passUntil(of, () => of.lines.length > 0, `${status}: a line`)
    t.match(of.lines, [want])
    await passUntil(of, () => of.collector.requests > 2, `${status}: further attempts`)
    of.collector.status = 202
    await passUntil(of, () => of.sent === 3, `${status}: the spans`)
    t.equal(of.lines.length, 2, `${status}: one line per outage`)
    t.equal(of.lost, 0)
  }
})

t.test('spans that a collector refuses are lost', async (t) => {
  const of = await open(t)
  of.collector.status = 404
  add(of, 3)
  await until(() => of.lost === 3, 'losses')
  t.match(of.lines, [/status 404/])
  of.collector.status = 302
  add(of, 3)
  await passUntil(of, () => of.lost === 6, 'a redirect is not followed')
  await of.exporter.stop()

  const url = new URL(`http://127.0.0.1:${of.port}/v1/traces`)
  const other = await open(t, { url, format: OTLP })
  of.collector.status = 200
  of.collector.reply = '{"partialSuccess":{"rejectedSpans":"2"}}'
  add(other, 3)
  await until(() => other.sent === 1, 'a part')
  t.equal(other.lost, 2)
  t.strictSame(other.lines, [])
})

t.test('the end does not wait for a collector that does not reply', async (t) => {
  for (const status of [0, 'upgrade'] as const) {
    const of = await open(t)
    of.collector.status = status
    add(of, 5)
    await until(() => of.collector.requests === 1, `${status}: a request`)
    const stopped = of.exporter.stop()
    await of.timers.advance(1000)
    await stopped
    t.equal(of.lost, 5)
  }
})
