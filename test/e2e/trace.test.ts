import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { UdpClient } from '../support/client.ts'
import { ask } from '../support/dig.ts'
import { getText } from '../support/get-text.ts'
import { needs, run } from '../support/peer.ts'
import { Prometheus } from '../support/prometheus.ts'
import { freePort, startServer } from '../support/server.ts'
import { TraceCollector } from '../support/trace-collector.ts'
import { until } from '../support/until.ts'

/* A server that traces, with data threads, and a collector that comes late. */

const ZONE = `$ORIGIN z.example.
@ 3600 SOA ns hostmaster 1 3600 600 86400 60
@ 3600 NS ns
ns 60 A 192.0.2.53
`

t.test(
  'spans of queries on all threads, and a collector that was away',
  needs('dig'),
  async (t) => {
    const collector = new TraceCollector(t)
    const [tracer, http] = [await freePort(), await freePort()]
    const server = await startServer(t, {
      corefile: `z.example:{PORT} {
      bind 127.0.0.1
      multisocket 1
      metadata
      prometheus 127.0.0.1:${http}
      trace otlp 127.0.0.1:${tracer} {
        service me
        zipkin_max_batch_interval 50ms
      }
      log . "{name} {proto} {rcode} id={/trace/traceid}"
      transfer {
        to *
      }
      file zone
    }`,
      files: { zone: ZONE },
    })
    await ask('dig', server.port, ['ns.z.example', 'A'])
    await ask('dig', server.port, ['+tcp', 'none.z.example', 'A'])
    await server.prints(/trace: http:\S+ accepts no spans, trying again: connect ECONNREFUSED/)
    await ask('dig', server.port, ['z.example', 'AXFR'])
    await collector.listen(tracer)
    await until(() => collector.spans.length === 3, 'spans')
    await server.prints(/accepts spans again: lost 0/)
    await until(() => server.output().split(' id=').length === 4, 'lines of queries')
    const text = server.output()
    const byName = new Map(collector.spans.map((span) => [span.tags['coredns.io/type'], span]))
    t.equal(new Set(collector.spans.map(({ traceId }) => traceId)).size, 3)
    for (const { tags, traceId, service } of collector.spans) {
      const { 'coredns.io/name': name, 'coredns.io/proto': proto, 'coredns.io/rcode': rcode } = tags
      t.match(text, `${name} ${proto} ${rcode} id=${traceId}`, `${name} ${proto}`)
      t.equal(service, 'me')
    }
    t.match(byName.get('AXFR')!.tags, { 'coredns.io/rcode': 'NOERROR', 'coredns.io/proto': 'tcp' })
    const page = async () => (await getText(`http://127.0.0.1:${http}/metrics`)).text
    const sent = new RegExp(`sextant_trace_spans_total{endpoint="http:.*:${tracer}/v1/traces"} 3`)
    await until(async () => sent.test(await page()), 'the metric')
    // What waits is sent at the end.
    await ask('dig', server.port, ['ns.z.example', 'AAAA'])
    server.process.kill('SIGTERM')
    t.equal(await server.exited(), 0)
    t.equal(collector.spans.length, 4)
  },
)

t.test(
  'Prometheus reads OpenMetrics, with the trace of a query',
  needs('prometheus', 'promtool'),
  async (t) => {
    const collector = new TraceCollector(t)
    const [tracer, http] = [await collector.listen(), await freePort()]
    const server = await startServer(t, {
      corefile: `z.example:{PORT} {
      bind 127.0.0.1
      prometheus 127.0.0.1:${http} {
        runtime_metrics
      }
      trace 127.0.0.1:${tracer} {
        zipkin_max_batch_interval 50ms
      }
      errors
      cache
      file zone
    }`,
      files: { zone: ZONE },
    })
    const client = await UdpClient.connect(server.port)
    await client.ask({ name: 'ns.z.example', type: 'A' })
    client.close()
    await until(() => collector.spans.length > 0, 'a span')
    const prometheus = await Prometheus.start(t, { dns: `127.0.0.1:${http}` })
    const up = ['up', '', 'up == 1', ''] as const
    const name = 'coredns_dns_request_duration_seconds_bucket'
    const durations = ['durations', '', `${name}{le="+Inf",zone="z.example."} > 0`, ''] as const
    await prometheus.fills([up, durations])
    let exemplars = await prometheus.exemplars(name)
    await until(async () => {
      exemplars = await prometheus.exemplars(name)
      return exemplars.length > 0
    }, 'an exemplar')
    const traces = new Set(collector.spans.map(({ traceId }) => traceId))
    t.ok(traces.has(exemplars[0]!.labels.trace_id ?? ''))

    const url = `http://127.0.0.1:${http}/metrics`
    const { text: plain } = await getText(url)
    t.notMatch(plain, /trace_id|# EOF/)
    const page = join(server.directory, 'page')
    writeFileSync(page, plain)
    const { code, stderr } = await run('sh', ['-c', 'promtool check metrics < "$0"', page])
    // It has nothing against the format. CoreDNS's names and texts are not always those that it recommends.
    t.notMatch(stderr, /error/i)
    t.not(code, 1, stderr)
  },
)
