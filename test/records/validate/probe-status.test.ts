import t from 'tap'
import { validateResource } from '../../../src/records/validate/resource.ts'
import type { YamlValue } from '../../../src/yaml/scan-block-yaml.ts'

const KNOWN = 'DNSHealthCheckProbe team/p reports it as unhealthy'

const TABLE: readonly { readonly status: YamlValue; readonly want: string }[] = [
  { status: {}, want: '' },
  { status: { healthy: true, consecutiveFailures: 2, reason: 'status 503' }, want: '' },
  { status: { healthy: false }, want: KNOWN },
  { status: { healthy: false, consecutiveFailures: 1 }, want: `${KNOWN} after 1 failure` },
  {
    status: { healthy: false, consecutiveFailures: 6, reason: 'status 503', status: 503 },
    want: `${KNOWN} after 6 failures: status 503`,
  },
  { status: { healthy: false, status: 503 }, want: `${KNOWN}: status 503` },
  {
    status: { healthy: false, reason: `a\nb${'c'.repeat(400)}` },
    want: `${KNOWN}: a\\x0ab${'c'.repeat(297)}`,
  },
  { status: { healthy: false, consecutiveFailures: '6', reason: [1], status: -1 }, want: KNOWN },
]

t.test('an address that is down has the reason of the status', async (t) => {
  for (const { status, want } of TABLE) {
    const labels = { 'kuadrant.io/health-probes-owner': 'a' }
    const resource = validateResource({
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSHealthCheckProbe',
      metadata: { name: 'p', namespace: 'team', labels },
      spec: { address: '192.0.2.1' },
      status,
    })
    const reason = resource.kind === 'probe' ? resource.probe.downReason : resource.kind
    t.equal(reason, want, JSON.stringify(status).slice(0, 80))
  }
})
