import t from 'tap'
import { triggerOf } from '../../../src/authority/cluster/packed.ts'
import { MetricsRegistry } from '../../../src/base/telemetry/metrics.ts'
import type { ApiClient } from '../../../src/kube/api.ts'
import { MeasuredClient, programmingDurations } from '../../../src/plugins/kubernetes/metrics.ts'
import { FakeClock } from '../../support/setup.ts'

t.test('requests are counted, also those without a response', async (t) => {
  const clock = new FakeClock()
  const metrics = new MetricsRegistry()
  let isAway = false
  const send = async () => {
    clock.pass(30)
    if (isAway) throw new Error('away')
    return { status: 200, retryAfterSeconds: 0, body: (async function* () {})() }
  }
  const client: ApiClient = {
    place: 'https://api.example.com:6443/base',
    get: send,
    send,
    refresh: () => {},
  }
  const measured = new MeasuredClient(client, clock, metrics)
  const { signal } = new AbortController()
  t.equal((await measured.get('/api', signal)).status, 200)
  await measured.send('POST', '/api', undefined, signal)
  isAway = true
  await t.rejects(measured.get('/api', signal), { message: 'away' })
  const page = await metrics.print()
  const host = 'host="api.example.com:6443"'
  const requests = 'coredns_kubernetes_rest_client_requests_total'
  t.match(page, `${requests}{code="200",method="GET",${host}} 1`)
  t.match(page, `${requests}{code="200",method="POST",${host}} 1`)
  t.match(page, `${requests}{code="<error>",method="GET",${host}} 1`)
  const duration = 'coredns_kubernetes_rest_client_request_duration_seconds'
  t.match(page, `${duration}_bucket{le="0.025",verb="GET",${host}} 0`)
  t.match(page, `${duration}_bucket{le="0.05",verb="GET",${host}} 2`)
})

t.test('the time from a change of endpoints', async (t) => {
  const slice = (time: string | undefined, service = 'db') => ({
    metadata: {
      namespace: 'a',
      name: 'db-1',
      labels: { 'kubernetes.io/service-name': service },
      annotations:
        time === undefined ? {} : { 'endpoints.kubernetes.io/last-change-trigger-time': time },
    },
  })
  const changedMs = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
  t.strictSame(triggerOf(slice('2026-01-02T03:04:05.678901234Z')), {
    namespace: 'a',
    service: 'db',
    changedMs,
  })
  t.equal(triggerOf(slice('soon')), undefined)
  t.equal(triggerOf(slice(undefined)), undefined)
  t.equal(triggerOf(slice('2026-01-02T03:04:05Z', '')), undefined)
  const metrics = new MetricsRegistry()
  programmingDurations(metrics).observe({ service_kind: 'headless_with_selector' }, 0.003)
  const page = await metrics.print()
  t.match(page, /duration_seconds_bucket\{le="0\.002",[^}]*\} 0\n.*le="0\.004",[^}]*\} 1\n/)
})
