import t from 'tap'
import type { ApiObject } from '../../../src/kube/api.ts'
import type { AddressProbe } from '../../../src/operator/status/conditions.ts'
import { dnsRecord, secret } from '../../support/operator-objects.ts'
import { KEY, OperatorFixture } from './stage.ts'

const CHECK = { protocol: 'HTTP', port: 80 }
const NAMES = ['app', 'delegated']

/** Status, reason and message of the condition Healthy. */
function healthy(fixture: OperatorFixture, name = 'app'): readonly unknown[] | undefined {
  const conditions = fixture.field(name, 'status', 'conditions') as readonly ApiObject[]
  const found = conditions.find(({ type }) => type === 'Healthy')
  return found && [found.status, found.reason, found.message]
}

function report(fixture: OperatorFixture, key: string, probes: readonly AddressProbe[]): void {
  const of = (health: string) =>
    probes.filter((one) => one.health === health).map(({ address }) => address)
  fixture.cluster.health.set(key, { down: of('down'), up: of('up'), probes })
}

t.test('Healthy is removed with the health check', async (t) => {
  const fixture = new OperatorFixture()
  fixture.cluster.put(dnsRecord({ spec: { healthCheck: CHECK } }))
  const labels = { 'kuadrant.io/default-provider': 'true' }
  fixture.cluster.put(secret('a', 'coredns', { ZONES: 'k.example.com' }, { labels }))
  const delegating = { delegate: true, providerRef: undefined } as unknown as ApiObject
  fixture.cluster.put(dnsRecord({ name: 'delegated', spec: { healthCheck: CHECK, ...delegating } }))
  for (const name of NAMES) {
    report(fixture, `a/${name}`, [{ address: '192.0.2.1', health: 'up' }])
    await fixture.reconciler.reconcile(`a/${name}`)
    t.strictSame(healthy(fixture, name), ['True', 'AllChecksPassed', 'All healthchecks succeeded'])
    report(fixture, `a/${name}`, [])
    await fixture.reconciler.reconcile(`a/${name}`)
    t.equal(healthy(fixture, name), undefined, name)
  }
})

t.test('an address that cannot be probed makes health unknown', async (t) => {
  const fixture = new OperatorFixture()
  fixture.cluster.put(dnsRecord({ spec: { healthCheck: CHECK } }))
  const notProbed = 'Secret token with headers is missing in namespace a'
  report(fixture, KEY, [{ address: '192.0.2.1', health: 'unknown', notProbed }])
  await fixture.reconcile()
  t.strictSame(healthy(fixture), [
    'Unknown',
    'NotProbed',
    `Addresses that cannot be probed are served: 192.0.2.1: ${notProbed}`,
  ])
})

t.test('a health check that a wildcard host cannot have is reported', async (t) => {
  const fixture = new OperatorFixture()
  fixture.cluster.put(dnsRecord({ spec: { rootHost: '*.k.example.com', healthCheck: CHECK } }))
  await fixture.reconcile()
  t.match(healthy(fixture), ['Unknown', 'NotProbed', /^The health check is not executed/])
})

t.test('without probing, health is unknown', async (t) => {
  const fixture = new OperatorFixture()
  fixture.isProbing = false
  fixture.start()
  fixture.cluster.put(dnsRecord({ spec: { healthCheck: CHECK } }))
  await fixture.reconcile()
  const disabled = ['Unknown', 'ProbesDisabled', /^Probes are disabled by --enable-probes=false/]
  t.match(healthy(fixture), disabled)
  report(fixture, KEY, [{ address: '192.0.2.1', health: 'down' }])
  await fixture.reconcile()
  const down = ['False', 'HealthChecksFailed', 'Not healthy addresses: [192.0.2.1]']
  t.strictSame(healthy(fixture), down, 'another program reports it')
  const plain = dnsRecord({ name: 'plain' })
  fixture.cluster.put(plain)
  await fixture.reconcile('a/plain')
  t.equal(healthy(fixture, 'plain'), undefined, 'no health check')
})

t.test('the status counts what is served, and names what is down', async (t) => {
  const fixture = new OperatorFixture()
  const labels = { 'kuadrant.io/default-provider': 'true' }
  fixture.cluster.put(secret('a', 'coredns', { ZONES: 'k.example.com' }, { labels }))
  const targets = ['192.0.2.1', '192.0.2.2', '192.0.2.3']
  const endpoints = [{ dnsName: 'k.example.com', recordType: 'A', recordTTL: 60, targets }]
  const delegating = { delegate: true, providerRef: undefined } as unknown as ApiObject
  fixture.cluster.put(dnsRecord({ spec: { endpoints } }))
  fixture.cluster.put(dnsRecord({ name: 'delegated', spec: { endpoints, ...delegating } }))
  const counts = (name: string) => [
    fixture.field(name, 'status', 'served'),
    fixture.field(name, 'status', 'down'),
  ]
  for (const { down, want } of [
    { down: [], want: ['3/3', undefined] },
    { down: ['192.0.2.2'], want: ['2/3', '192.0.2.2'] },
    { down: targets, want: ['3/3', '192.0.2.1 192.0.2.2 192.0.2.3'] },
  ]) {
    for (const name of NAMES) {
      fixture.clock.pass(120_000)
      const probes = down.map((address) => ({ address, health: 'down' as const }))
      report(fixture, `a/${name}`, probes)
      await fixture.reconciler.reconcile(`a/${name}`)
      await fixture.reconciler.reconcile(`a/${name}`)
      t.strictSame(counts(name), want, `${name} ${down}`)
    }
  }
  fixture.hasCounts = false
  const old = dnsRecord({ name: 'old' })
  fixture.cluster.put(old)
  await fixture.reconciler.reconcile('a/old')
  t.strictSame(counts('old'), [undefined, undefined], 'with a definition without the fields')
})
