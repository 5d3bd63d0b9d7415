import t from 'tap'
import type { ApiObject } from '../../../src/kube/api.ts'
import type { Informer } from '../../../src/kube/informer.ts'
import { ProbeIndex } from '../../../src/operator/cluster/probe-index.ts'

type Listener = Parameters<Informer['subscribe']>[0]

function probe(status: ApiObject): ApiObject {
  const labels = { 'kuadrant.io/health-probes-owner': 'app' }
  return {
    metadata: { name: 'p', namespace: 'a', labels },
    spec: { address: '192.0.2.1', port: 80, protocol: 'HTTP', interval: '60s' },
    status,
  }
}

t.test('the health of an address, and why it is not probed', (t) => {
  let listener: Listener | undefined
  const changed: string[] = []
  const informer = {
    subscribe: (given: Listener) => {
      listener = given
      return () => {}
    },
  }
  const index = new ProbeIndex(informer, (key) => changed.push(key))
  const why = 'Secret token with headers is missing in namespace a'
  for (const { status, want, isNews } of [
    { status: {}, want: { health: 'unknown', notProbed: '' }, isNews: true },
    {
      status: { healthy: true, consecutiveFailures: 0, reason: why },
      want: { health: 'up', notProbed: why },
      isNews: true,
    },
    {
      status: { consecutiveFailures: 0, reason: why },
      want: { health: 'unknown', notProbed: why },
      isNews: true,
    },
    {
      status: { healthy: true, consecutiveFailures: 1, reason: 'status 503' },
      want: { health: 'up', notProbed: '' },
      isNews: true,
    },
    {
      status: { healthy: true, consecutiveFailures: 2, reason: 'status 503' },
      want: { health: 'up', notProbed: '' },
      isNews: false,
    },
    {
      status: { healthy: false, consecutiveFailures: 3, reason: 'status 503' },
      want: {
        health: 'down',
        notProbed: '',
        reason: 'DNSHealthCheckProbe a/p reports it as unhealthy after 3 failures: status 503',
      },
      isNews: true,
    },
    {
      // The first reason is kept: each change would be a write.
      status: { healthy: false, consecutiveFailures: 4, reason: 'timeout' },
      want: {
        health: 'down',
        notProbed: '',
        reason: 'DNSHealthCheckProbe a/p reports it as unhealthy after 3 failures: status 503',
      },
      isNews: false,
    },
    { status: { healthy: true }, want: { health: 'up', notProbed: '' }, isNews: true },
    {
      status: { healthy: false, consecutiveFailures: 3, reason: 'timeout' },
      want: {
        health: 'down',
        notProbed: '',
        reason: 'DNSHealthCheckProbe a/p reports it as unhealthy after 3 failures: timeout',
      },
      isNews: true,
    },
  ]) {
    changed.length = 0
    listener!.onUpdate?.('a/p', probe(status), {}, false)
    t.strictSame(index.healthOf('a/app').probes, [{ address: '192.0.2.1', ...want }])
    t.strictSame(changed, isNews ? ['a/app'] : [])
  }
  t.end()
})
