import t from 'tap'
import { Dispenser } from '../../../src/corefile/dispenser.ts'
import { scanTokens } from '../../../src/corefile/lexer.ts'
import { scanTrace } from '../../../src/plugins/trace/settings.ts'
import { trace } from '../../../src/plugins/trace/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'

const scan = (corefile: string) =>
  scanTrace(new Dispenser(scanTokens(corefile, 'Corefile')), () => {})

t.test('endpoints', async (t) => {
  const table = [
    ['trace', 'zipkin http://localhost:9411/api/v2/spans'],
    ['trace tracer:1234', 'zipkin http://tracer:1234/api/v2/spans'],
    ['trace [::1]:1234', 'zipkin http://[::1]:1234/api/v2/spans'],
    ['trace zipkin tracer:1234', 'zipkin http://tracer:1234/api/v2/spans'],
    ['trace ZIPKIN HTTPS://tracer/a?b=C', 'zipkin https://tracer/a?b=C'],
    ['trace http://tracer:9411/b/api/v2/spans', 'zipkin http://tracer:9411/b/api/v2/spans'],
    ['trace otlp', 'otlp http://localhost:4318/v1/traces'],
    ['trace otlp tracer:4318', 'otlp http://tracer:4318/v1/traces'],
    ['trace otlp https://tracer:4318', 'otlp https://tracer:4318/v1/traces'],
    ['trace otlp https://tracer/in/v1/traces', 'otlp https://tracer/in/v1/traces'],
  ] as const
  for (const [given, want] of table) {
    const { kind, url } = scan(given)
    t.equal(`${kind} ${url.href}`, want, given)
  }
})

t.test('properties', async (t) => {
  t.match(scan('trace'), {
    every: 1,
    service: 'coredns',
    backlogMax: 1000,
    batchMax: 100,
    intervalMs: 1000,
  })
  const given = `trace {
    every 100
    service me
    client_server false
    zipkin_max_backlog_size 50
    zipkin_max_batch_size 20
    zipkin_max_batch_interval 1m30s
  }`
  t.match(scan(given), {
    every: 100,
    service: 'me',
    backlogMax: 50,
    batchMax: 20,
    intervalMs: 90_000,
  })
})

t.test('bad arguments', async (t) => {
  const table = [
    { given: 'trace a b c', want: /Wrong argument count/ },
    { given: 'trace jaeger a:1', want: /type 'jaeger' is not supported; use zipkin or otlp/ },
    { given: 'trace datadog a:1', want: /datadog is not supported; its agent accepts OTLP/ },
    { given: 'trace ftp://a', want: /endpoint "ftp:\/\/a"; use HOST:PORT, or http/ },
    { given: 'trace a:1/b', want: /endpoint "a:1\/b"/ },
    { given: 'trace a:99999', want: /endpoint "a:99999"/ },
    { given: 'trace otlp http://', want: /endpoint "http:\/\/"/ },
    { given: 'trace {\nevery\n}', want: /Wrong argument count/ },
    { given: 'trace {\nevery -1\n}', want: /Corefile:2 .*every is "-1"; use a number from 0/ },
    { given: 'trace {\nclient_server junk\n}', want: /client_server is "junk"; use true or false/ },
    { given: 'trace {\nzipkin_max_backlog_size 0\n}', want: /backlog_size is "0"; use a number/ },
    { given: 'trace {\nzipkin_max_batch_size wrong\n}', want: /batch_size is "wrong"/ },
    {
      given: 'trace {\nzipkin_max_batch_interval 5\n}',
      want: /batch_interval is "5"; write a dur/,
    },
    { given: 'trace {\ndatadog_analytics_rate 1\n}', want: /only for datadog, which is not/ },
    { given: 'trace {\nevrey 100\n}', want: /unknown property 'evrey'.*every/ },
    { given: 'trace\ntrace', want: /only be used once per Server Block/ },
  ]
  for (const { given, want } of table) t.match(setupError(trace, given), want, given)
})

t.test('what has no effect', async (t) => {
  const { warnings } = new SetUp(trace, 'trace {\nclient_server\nevery 0\n}')
  t.match(warnings, [/^2: client_server of trace has no effect/, /^3: trace with every 0 samples/])
})
