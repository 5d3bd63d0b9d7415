import t from 'tap'
import { OTLP } from '../../../../src/base/telemetry/spans/otlp.ts'
import type { Span } from '../../../../src/base/telemetry/spans/span.ts'
import { ZIPKIN } from '../../../../src/base/telemetry/spans/zipkin.ts'

const SPAN: Span = {
  traceId: '0123456789abcdef0123456789abcdef',
  spanId: '0123456789abcdef',
  name: 'servedns',
  kind: 'server',
  startMs: 1_700_000_000_000.5,
  durationMs: 1.25,
  attributes: { 'coredns.io/name': 'www.example.org.' },
  error: '',
  local: { address: '2001:db8::53', port: 53 },
  remote: { address: '192.0.2.1', port: 5353 },
}
const PLAIN: Span = {
  ...SPAN,
  kind: 'internal',
  durationMs: 0,
  error: 'no zone',
  local: undefined,
  remote: undefined,
}

t.test('Zipkin', async (t) => {
  const [first, second] = JSON.parse(ZIPKIN.print([SPAN, PLAIN], 'me')) as unknown[]
  t.strictSame(first, {
    traceId: SPAN.traceId,
    id: SPAN.spanId,
    kind: 'SERVER',
    name: 'servedns',
    timestamp: 1_700_000_000_000_500,
    duration: 1250,
    localEndpoint: { serviceName: 'me', ipv6: '2001:db8::53', port: 53 },
    remoteEndpoint: { ipv4: '192.0.2.1', port: 5353 },
    tags: { 'coredns.io/name': 'www.example.org.' },
  })
  t.strictSame(second, {
    traceId: SPAN.traceId,
    id: SPAN.spanId,
    name: 'servedns',
    timestamp: 1_700_000_000_000_500,
    duration: 1,
    localEndpoint: { serviceName: 'me' },
    tags: { 'coredns.io/name': 'www.example.org.', error: 'no zone' },
  })
  t.equal(ZIPKIN.countRefused('{}'), 0)
})

t.test('OTLP', async (t) => {
  const { resourceSpans } = JSON.parse(OTLP.print([SPAN, PLAIN], 'me')) as {
    resourceSpans: { resource: unknown; scopeSpans: { spans: unknown[] }[] }[]
  }
  const attribute = (key: string, stringValue: string) => ({ key, value: { stringValue } })
  t.strictSame(resourceSpans[0]!.resource, { attributes: [attribute('service.name', 'me')] })
  const [first, second] = resourceSpans[0]!.scopeSpans[0]!.spans
  t.strictSame(first, {
    traceId: SPAN.traceId,
    spanId: SPAN.spanId,
    name: 'servedns',
    kind: 2,
    startTimeUnixNano: '1700000000000500000',
    endTimeUnixNano: '1700000000001750000',
    attributes: [
      attribute('coredns.io/name', 'www.example.org.'),
      attribute('server.address', '2001:db8::53'),
      attribute('server.port', '53'),
      attribute('client.address', '192.0.2.1'),
      attribute('client.port', '5353'),
    ],
    status: {},
  })
  t.match(second, { kind: 1, status: { code: 2, message: 'no zone' } })
  const table: readonly [string, number][] = [
    ['{"partialSuccess":{"rejectedSpans":"3"}}', 3],
    ['{"partialSuccess":{"rejectedSpans":4}}', 4],
    ['{"partialSuccess":{}}', 0],
    ['{}', 0],
    ['null', 0],
    ['', 0],
    ['<html>', 0],
    ['{"partialSuccess":{"rejectedSpans":"-1"}}', 0],
    ['{"partialSuccess":{"rejectedSpans":"x"}}', 0],
    ['{"partialSuccess":{"rejectedSpans":{"toString":1,"valueOf":1}}}', 0],
  ]
  for (const [reply, want] of table) t.equal(OTLP.countRefused(reply), want, reply)
})
