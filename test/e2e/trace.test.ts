import t from 'tap'
import { ask } from '../support/dig.ts'
import { getText } from '../support/get-text.ts'
import { needs } from '../support/peer.ts'
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
