import t from 'tap'
import { VERSION } from '../../../src/base/version.ts'
import { Rcode, RRType } from '../../../src/dns/iana/index.ts'
import type { DroppedCounters } from '../../../src/plugin/server-counters.ts'
import { TRACED_DURATIONS } from '../../../src/plugin/traced-durations.ts'
import { prometheus } from '../../../src/plugins/prometheus/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'
import { answering, lonelyServer, transaction } from '../../support/transaction.ts'

const SLOT = 'server="dns://:53",zone="example.org.",view=""'

function answer(rcode: number, plugin: string, late = false) {
  return answering((tx) => {
    tx.response.answeredBy = plugin
    tx.response.rcode = Math.max(0, rcode)
    return rcode
  }, late)
}

/** Queries that the server answered itself, over UDP and then TCP, from IPv4 and then IPv6. */
function queries(...counts: readonly number[]): DroppedCounters['queries'] {
  return counts.map((count, i) => ({ proto: i < 2 ? 'udp' : 'tcp', family: (i % 2) + 1, count }))
}

t.test('queries and replies are counted', async (t) => {
  const setUp = new SetUp(prometheus, 'prometheus')
  let below = answer(Rcode.NOERROR, 'file')
  setUp.block.directives.push('file', 'kuadrant')
  const handler = setUp.handler({ name: 'below', serve: (tx) => below.serve(tx) })
  await setUp.start()
  setUp.clock.monotonicMs = 1003
  const zone = 'example.org.'
  const name = 'a.example.org.'
  handler.serve(transaction({ name, zone, startedMs: 1000 }))
  handler.serve(transaction({ name, zone, startedMs: 1002.9, payloadOctets: 1232, dnssecOk: true }))
  below = answer(Rcode.NXDOMAIN, 'kuadrant', true)
  await handler.serve(transaction({ name, zone, type: RRType.SVCB, tcp: true, from: '::1' }))
  below = answer(Rcode.REFUSED, '')
  handler.serve(transaction({ name, zone, type: 65280 }))
  below = answer(-1, '')
  handler.serve(transaction({ name, zone, type: RRType.HINFO }))

  const table: [string, number | undefined][] = [
    [`coredns_dns_requests_total{${SLOT},proto="udp",family="1",type="A"}`, 2],
    [`coredns_dns_requests_total{${SLOT},proto="tcp",family="2",type="SVCB"}`, 1],
    [`coredns_dns_requests_total{${SLOT},proto="udp",family="1",type="other"}`, 2],
    [`coredns_dns_requests_total{${SLOT},proto="udp",family="1",type="AAAA"}`, undefined],
    [`coredns_dns_do_requests_total{${SLOT}}`, 1],
    [`coredns_dns_responses_total{${SLOT},rcode="NOERROR",plugin="file"}`, 2],
    [`coredns_dns_responses_total{${SLOT},rcode="NXDOMAIN",plugin="kuadrant"}`, 1],
    [`coredns_dns_responses_total{${SLOT},rcode="REFUSED",plugin=""}`, 1],
    [`coredns_dns_request_duration_seconds_bucket{${SLOT},le="0.00025"}`, 1],
    [`coredns_dns_request_duration_seconds_bucket{${SLOT},le="0.004"}`, 2],
    [`coredns_dns_request_duration_seconds_bucket{${SLOT},le="8.192"}`, 5],
    [`coredns_dns_request_duration_seconds_count{${SLOT}}`, 5],
    [`coredns_dns_request_size_bytes_bucket{${SLOT},proto="udp",le="0"}`, 0],
    [`coredns_dns_request_size_bytes_bucket{${SLOT},proto="udp",le="100"}`, 4],
    [`coredns_dns_request_size_bytes_sum{${SLOT},proto="udp"}`, 31 * 4 + 11],
    [`coredns_dns_response_size_bytes_count{${SLOT},proto="udp"}`, 3],
    [`coredns_dns_response_size_bytes_count{${SLOT},proto="tcp"}`, 1],
  ]
  for (const [series, want] of table) t.equal(await setUp.metric(series), want, series)
})

t.test('sizes and times are in the first bucket that holds them', async (t) => {
  const setUp = new SetUp(prometheus, 'prometheus')
  setUp.block.directives.push('file')
  const handler = setUp.handler(answer(0, 'file'))
  await setUp.start()
  const octets = [17, 100, 101, 511, 512, 8291, 8292, 64_000, 64_001, 65_535]
  const milliseconds = [-1, 0, 0.25, 0.26, 8192, 8193]
  for (let i = 0; i < 10; i++) {
    const tx = transaction({ name: 'a.example.org.', zone: 'example.org.' })
    tx.query.packetOctets = octets[i]!
    tx.sentOctets = octets[i]! * 2
    tx.startedMs = 1
    tx.finishedMs = 1 + (milliseconds[i] ?? 0)
    if (tx.finishedMs === 0) tx.finishedMs = Number.MIN_VALUE
    handler.serve(tx)
  }
  const count = async (name: string, bound: string, rest = ''): Promise<unknown> => {
    return setUp.metric(`${name}_bucket{${SLOT}${rest},le="${bound}"}`)
  }
  for (const bound of [0, 100, 200, 511, 1023, 8291, 16e3, 64e3]) {
    const least = (factor: number): number => octets.filter((o) => o * factor <= bound).length
    const udp = ',proto="udp"'
    const [asked, sent] = ['coredns_dns_request_size_bytes', 'coredns_dns_response_size_bytes']
    t.equal(await count(asked, `${bound}`, udp), least(1), `asked ${bound}`)
    t.equal(await count(sent, `${bound}`, udp), least(2), `sent ${bound}`)
  }
  const seconds = 'coredns_dns_request_duration_seconds'
  t.equal(await count(seconds, '0.00025'), 7)
  t.equal(await count(seconds, '0.0005'), 8)
  t.equal(await count(seconds, '8.192'), 9)
  t.equal(await count(seconds, '+Inf'), 10)
})

t.test('durations have their traces, in OpenMetrics', async (t) => {
  const setUp = new SetUp(prometheus, 'prometheus')
  setUp.block.directives.push('file')
  const handler = setUp.handler(answer(0, 'file'))
  await setUp.start()
  const tx = transaction({ name: 'a.example.org.', zone: 'example.org.', startedMs: 1 })
  tx.finishedMs = 4
  handler.serve(tx)
  const labels = { server: 'dns://:53', zone: 'example.org.', view: '' }
  const traced = { labels, seconds: 0.003, traceId: '0123', atMs: 5000 }
  setUp.block.shared.find(TRACED_DURATIONS)!.addTraced(traced)
  const [endpoint = ''] = setUp.endpoints.keys()
  const { body, contentType } = await setUp.get(endpoint, {
    accept: 'application/openmetrics-text',
  })
  t.match(contentType, /^application\/openmetrics-text; version=1.0.0/)
  const bucket = `coredns_dns_request_duration_seconds_bucket{${SLOT},le="0.004"} 1`
  t.match(body, `\n${bucket} # {trace_id="0123"} 0.003 5.000\n`)
  t.match((await setUp.get(endpoint)).body, `\n${bucket}\n`)
})

t.test('zones, views and servers are kept apart', async (t) => {
  const setUp = new SetUp(prometheus, 'prometheus', ['example.org.', 'example.net.'])
  setUp.block.directives.push('file')
  const handler = setUp.handler(answer(0, 'file'))
  await setUp.start()
  const other = { ...lonelyServer, address: 'dns://[::1]:53' }
  handler.serve(transaction({ name: 'a.example.org.', zone: 'example.org.' }))
  handler.serve(transaction({ name: 'a.example.net.', zone: 'example.net.', view: 'v' }))
  handler.serve(transaction({ name: 'a.example.net.', zone: 'example.net.', view: 'v' }, other))
  for (const labels of [
    SLOT,
    'server="dns://:53",zone="example.net.",view="v"',
    'server="dns://[::1]:53",zone="example.net.",view="v"',
  ]) {
    const series = `coredns_dns_responses_total{${labels},rcode="NOERROR",plugin="file"}`
    t.equal(await setUp.metric(series), 1, series)
  }
})

t.test('a reload goes on counting', async (t) => {
  const setUp = new SetUp(prometheus, 'prometheus')
  setUp.block.directives.push('file')
  const handler = setUp.handler(answer(0, 'file'))
  await setUp.start()
  const series = `coredns_dns_requests_total{${SLOT},proto="udp",family="1",type="A"}`
  handler.serve(transaction({ name: 'a.example.org.', zone: 'example.org.' }))
  t.equal(await setUp.metric(series), 1)
  t.equal(await setUp.metric(series), 1, 'counted once, however often it is read')
  handler.serve(transaction({ name: 'a.example.org.', zone: 'example.org.' }))
  await setUp.stop()
  t.equal(await setUp.metric(series), 2, 'nothing counted is lost')
})

t.test('the server, its build and its plugins', async (t) => {
  const setUp = new SetUp(prometheus, 'prometheus')
  setUp.block.listenHosts.push('127.0.0.1', '::1')
  setUp.block.directives.push('whoami')
  await setUp.start()
  const dropped = new Map([
    [
      'dns://127.0.0.1:53',
      { formErr: 2, notImp: 0, badVers: 1, refused: 3, queries: queries(4, 0, 1, 1) },
    ],
    [
      'dns://[::1]:53',
      { formErr: 0, notImp: 7, badVers: 0, refused: 0, queries: queries(0, 7, 0, 0) },
    ],
  ])
  const losses = {
    overloaded: 5,
    unsent: 6,
    lines: 7,
    refusedConnections: 8,
    overrunConnections: 9,
  }
  Object.assign(setUp.serverCounters, { panics: 1, ignored: 4, dropped, losses })
  const build = `version="${VERSION}",revision="",goversion="${process.version}"`
  const ipv4 = 'server="dns://127.0.0.1:53",zone="dropped",view=""'
  const ipv6 = 'server="dns://[::1]:53",zone="dropped",view=""'
  const plugin = (server: string) => `server="${server}",zone="example.org.",view="",name="whoami"`
  const table: [string, number][] = [
    [`coredns_build_info{${build}}`, 1],
    ['coredns_panics_total', 1],
    ['sextant_dns_dropped_queries_total{reason="overload"}', 5],
    ['sextant_dns_unsent_replies_total', 6],
    ['sextant_log_dropped_lines_total', 7],
    ['sextant_dns_cut_connections_total{reason="limit"}', 8],
    ['sextant_dns_cut_connections_total{reason="unread"}', 9],
    ['sextant_dns_ignored_packets_total', 4],
    [`coredns_dns_responses_total{${ipv4},rcode="FORMERR",plugin=""}`, 2],
    [`coredns_dns_responses_total{${ipv4},rcode="REFUSED",plugin=""}`, 3],
    [`coredns_dns_responses_total{${ipv6},rcode="NOTIMP",plugin=""}`, 7],
    [`coredns_dns_requests_total{${ipv4},proto="udp",family="1",type="other"}`, 4],
    [`coredns_dns_requests_total{${ipv4},proto="tcp",family="1",type="other"}`, 1],
    [`coredns_dns_requests_total{${ipv4},proto="tcp",family="2",type="other"}`, 1],
    [`coredns_dns_requests_total{${ipv6},proto="udp",family="2",type="other"}`, 7],
    [`coredns_plugin_enabled{${plugin('dns://127.0.0.1:53')}}`, 1],
    [`coredns_plugin_enabled{${plugin('dns://[::1]:53')}}`, 1],
  ]
  for (const [series, want] of table) t.equal(await setUp.metric(series), want, series)
  t.equal(await setUp.metric('coredns_panics_total'), 1, 'set, not added up')
  t.equal(await setUp.metric('sextant_log_dropped_lines_total'), 7, 'set, not added up')
  const unknown = 'sextant_dns_dropped_queries_total{reason="buffer"}'
  t.equal(await setUp.metric(unknown), undefined, 'what is not known is not shown')
  t.ok(((await setUp.metric('process_resident_memory_bytes')) ?? 0) > 1e6)
  await setUp.stop()
  const gone = await setUp.metric(`coredns_plugin_enabled{${plugin('dns://[::1]:53')}}`)
  t.equal(gone, undefined)
})

t.test('the endpoint', async (t) => {
  const setUp = new SetUp(prometheus, 'prometheus')
  await setUp.start()
  const page = await setUp.get('localhost:9153/metrics')
  t.equal(page.status, 200)
  t.match(page.contentType, 'text/plain; version=0.0.4')
  t.match(page.body, '# TYPE coredns_dns_requests_total counter')
  t.notMatch(page.body, 'nodejs_')
  await setUp.stop()
})

t.test('runtime metrics on demand', async (t) => {
  const setUp = new SetUp(prometheus, 'prometheus :9253 {\n runtime_metrics\n}')
  await setUp.start()
  const page = await setUp.get(':9253/metrics')
  t.match(page.body, 'nodejs_heap_size_used_bytes')
  t.match(page.body, 'nodejs_eventloop_lag_seconds{quantile="0.99"}')
  await setUp.stop()
})

t.test('bad lines', async (t) => {
  const table = [
    { given: 'prometheus a b', want: 'Wrong argument count' },
    { given: 'prometheus localhost', want: 'missing port in address' },
    {
      given: 'prometheus\nprometheus',
      want: 'this plugin can only be used once per Server Block',
    },
    { given: 'prometheus {\n color red\n}', want: 'unknown option: color' },
    {
      given: 'prometheus {\n tls a b\n}',
      want: 'tls for metrics is not supported by this version of Sextant',
    },
  ]
  for (const { given, want } of table) t.match(setupError(prometheus, given), want, given)
})
