import t from 'tap'
import { MetricsRegistry } from '../../../src/base/telemetry/metrics.ts'
import { OPEN_METRICS_TYPE, prefersOpenMetrics } from '../../../src/base/telemetry/open-metrics.ts'

const OPEN = 'application/openmetrics-text'

t.test('which format a client prefers', async (t) => {
  const table: readonly [string, boolean][] = [
    ['', false],
    ['*/*', false],
    ['text/plain', false],
    [OPEN, true],
    [`${OPEN};version=1.0.0`, true],
    [`Application/OpenMetrics-Text; Version=1.0.0`, true],
    [`${OPEN};version=0.0.1`, false],
    [`${OPEN};q=0`, false],
    [`${OPEN};q=0.4,text/plain;q=0.5`, false],
    [`${OPEN};q=junk`, false],
    // Prometheus 2.42, 2.55 and 3.0.
    [
      `${OPEN};version=1.0.0,${OPEN};version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1`,
      true,
    ],
    [
      `${OPEN};version=1.0.0;q=0.5,${OPEN};version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2`,
      true,
    ],
    [
      `${OPEN};version=1.0.0;escaping=allow-utf-8;q=0.6,${OPEN};version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2`,
      true,
    ],
  ]
  for (const [accept, want] of table) t.equal(prefersOpenMetrics(accept), want, accept)
})

t.test('a page in both formats', async (t) => {
  const metrics = new MetricsRegistry()
  let collected = 0
  metrics.onCollect(() => collected++)
  metrics.counter('a_queries_total', 'Of "A".\\n', ['name']).inc({ name: 'x"\\\n' }, 2)
  metrics.counter('b_counter', 'B.').inc(3)
  metrics.gauge('c_bytes', 'C.').set(Number.POSITIVE_INFINITY)
  metrics.histogram('d_seconds', 'D.', [0.5, 1]).observe(0.7)
  const bulk = metrics.bulkHistogram('e_seconds', 'E.', [0.5, 1])
  bulk.add({ zone: 'z' }, [1, 1, 1], 4)
  bulk.addExemplar({ zone: 'z' }, 0.5, 'early', 1_700_000_000_001)
  bulk.addExemplar({ zone: 'z' }, 0.25, '0123', 1_700_000_000_002)
  bulk.addExemplar({ zone: 'z' }, 3, '4567', 1_700_000_000_003)
  const open = await metrics.page(OPEN)
  t.equal(open.contentType, OPEN_METRICS_TYPE)
  t.equal(
    open.body,
    `# TYPE a_queries counter
# HELP a_queries Of \\"A\\".\\\\n
a_queries_total{name="x\\"\\\\\\n"} 2
# TYPE b_counter unknown
# HELP b_counter B.
b_counter 3
# TYPE c_bytes gauge
# UNIT c_bytes bytes
# HELP c_bytes C.
c_bytes +Inf
# TYPE d_seconds histogram
# UNIT d_seconds seconds
# HELP d_seconds D.
d_seconds_bucket{le="0.5"} 0
d_seconds_bucket{le="1.0"} 1
d_seconds_bucket{le="+Inf"} 1
d_seconds_sum 0.7
d_seconds_count 1
# TYPE e_seconds histogram
# UNIT e_seconds seconds
# HELP e_seconds E.
e_seconds_bucket{zone="z",le="0.5"} 1 # {trace_id="0123"} 0.25 1700000000.002
e_seconds_bucket{zone="z",le="1.0"} 2
e_seconds_bucket{zone="z",le="+Inf"} 3 # {trace_id="4567"} 3 1700000000.003
e_seconds_sum{zone="z"} 4
e_seconds_count{zone="z"} 3
# EOF
`,
  )
  const plain = await metrics.page('text/plain')
  t.match(plain.contentType, 'text/plain; version=0.0.4')
  t.match(plain.body, '# TYPE a_queries_total counter\n')
  t.match(plain.body, 'e_seconds_bucket{zone="z",le="0.5"} 1\n')
  t.notMatch(plain.body, /EOF|0123/)
  t.equal(collected, 2)
  t.equal(await metrics.print(), plain.body, 'the other format changes nothing')
})
