import t from 'tap'
import { MetricsRegistry } from '../../../src/base/telemetry/metrics.ts'
import { collectProblems, type ProblemKind } from '../../../src/base/telemetry/problems.ts'
import { AddressHealth } from '../../../src/health/address-health.ts'
import type { ApiObject } from '../../../src/kube/api.ts'
import { OperatorMetrics } from '../../../src/operator/metrics.ts'
import { Reporter } from '../../../src/operator/reconcile/reporter.ts'
import { ClusterStore } from '../../../src/sources/kubernetes/cluster-store.ts'
import { ToyCluster, ToyPeers } from '../../support/operator-cluster.ts'
import { at, dnsRecord, secret } from '../../support/operator-objects.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { FakeClock } from '../../support/setup.ts'
import { toyReconciler } from '../../support/toy-reconciler.ts'

const KEY = 'a/app'
const withProperty = (name: string, value: string): ApiObject => {
  const providerSpecific = [{ name, value }]
  const dnsName = 'k.example.com'
  const endpoint = { dnsName, recordType: 'A', targets: ['192.0.2.1'], setIdentifier: 'one' }
  return dnsRecord({ spec: { endpoints: [{ ...endpoint, providerSpecific }] } })
}
const annotated = (annotations: ApiObject): ApiObject => dnsRecord({ metadata: { annotations } })

/** What one fault of a DNSRecord in a cluster looks like. */
interface Row {
  readonly name: string
  readonly object: ApiObject
  /** Type, status, reason and message of the condition. */
  readonly condition: RegExp
  readonly event: RegExp
  /** Of the server that watches the cluster; missing = the server gets no such record, or finds it in its zones. */
  readonly problem?: { readonly kind: ProblemKind; readonly reason: RegExp }
}

const TABLE: readonly Row[] = [
  {
    name: 'a refused record',
    object: withProperty('geo-code', 'GEO-XX'),
    condition: /^Ready False ValidationError: .*"GEO-XX"/,
    event: /^ValidationError: .*"GEO-XX"/,
    problem: { kind: 'refused-record', reason: /^a\/app is refused: .*"GEO-XX"/ },
  },
  {
    name: 'a record that no zone has',
    object: dnsRecord({
      spec: {
        rootHost: 'example.net',
        endpoints: [{ dnsName: 'example.net', recordType: 'A', targets: ['192.0.2.1'] }],
      },
    }),
    condition: /^Ready False DNSProviderError: Unable to find suitable zone/,
    event: /^DNSProviderError: Unable to find suitable zone/,
  },
  {
    name: 'an unknown property',
    object: withProperty('wieght', '5'),
    condition: /^Ready True ProviderSuccess: .*property "wieght" is unknown and is ignored/,
    event: /^PartIgnored: property "wieght" is unknown and is ignored/,
    problem: { kind: 'ignored-part', reason: /^a\/app: property "wieght" is unknown/ },
  },
  {
    name: 'an unknown annotation',
    object: annotated({ 'sextant.io/stiky': '24' }),
    condition: /^Ready True ProviderSuccess: .*annotation "sextant.io\/stiky" is unknown/,
    event: /^PartIgnored: annotation "sextant.io\/stiky" is unknown/,
    problem: { kind: 'ignored-part', reason: /annotation "sextant.io\/stiky" is unknown/ },
  },
  {
    name: 'a failover list without effect',
    object: annotated({ 'sextant.io/failover': 'GEO-EU: GEO-NA' }),
    condition: /^Ready True ProviderSuccess: .*: failover names "GEO-NA", which no endpoint has/,
    event: /^PartIgnored: k\.example\.com\.: failover names "GEO-NA", which no endpoint has/,
  },
]

t.test(
  'a fault of a record is in its conditions, an Event and the log, until it is mended',
  async (t) => {
    for (const { name, object, condition, event, problem } of TABLE) {
      const cluster = new ToyCluster()
      cluster.put(secret('a', 'coredns', { ZONES: 'k.example.com' }))
      const notes: string[] = []
      const { log, lines } = recordLog()
      const events = {
        record: (_: unknown, { reason, note }: { reason: string; note: string }) =>
          void notes.push(`${reason}: ${note}`),
      }
      const listener = new Reporter(events, new OperatorMetrics(new MetricsRegistry()), log)
      const reconciler = toyReconciler(cluster, new FakeClock(), { listener })
      const conditions = (): string => {
        const all = at(cluster.stored(KEY), 'status', 'conditions') as readonly ApiObject[]
        return all
          .map((one) => `${one.type} ${one.status} ${one.reason}: ${one.message}`)
          .join('\n')
      }
      const matches = (): boolean => new RegExp(condition, 'm').test(conditions())
      cluster.put(object)
      await reconciler.reconcile(KEY)
      t.ok(matches(), `${name}: ${conditions()}`)
      t.match(
        notes.find((note) => event.test(note)),
        event,
        `${name}: ${notes}`,
      )
      const store = new ClusterStore(new AddressHealth())
      const problems = () => {
        return collectProblems([{ plugin: 'kuadrant', groups: () => store.problemGroups('c') }])
          .listed
      }
      store.put('dnsrecords', object)
      const want = problem && { ...problem, object: KEY, place: 'kubernetes' }
      t.match(problems(), want === undefined ? [] : [want], name)
      // Mended.
      const { resourceVersion } = cluster.stored(KEY)!.metadata as ApiObject
      const { status } = cluster.stored(KEY)!
      cluster.put({
        ...dnsRecord({ metadata: { resourceVersion: resourceVersion! } }),
        status: status!,
      })
      await reconciler.reconcile(KEY)
      t.notOk(matches(), `${name}: ${conditions()}`)
      t.match(conditions(), /^Ready True ProviderSuccess/m, name)
      store.put('dnsrecords', dnsRecord())
      t.strictSame(problems(), [], `${name} is mended`)
      if (/^PartIgnored/.test(event.source.slice(0, 12)))
        t.match(lines, [/^\[WARNING\] a\/app: /], name)
    }
  },
)

t.test('an invalid endpoint in the stored state of a peer is logged once', async (t) => {
  const cluster = new ToyCluster()
  const address = '192.0.2.53:53'
  cluster.put(secret('a', 'coredns', { ZONES: 'k.example.com', NAMESERVERS: address }))
  const { log, lines } = recordLog()
  const listener = new Reporter(
    { record: () => {} },
    new OperatorMetrics(new MetricsRegistry()),
    log,
  )
  const reconciler = toyReconciler(cluster, new FakeClock(), { listener, peers: new ToyPeers() })
  const endpoint = { dnsName: 'k.example.com', recordType: 'A', targets: ['192.0.2.300'] }
  const peer = { address, state: 'Live', generation: 'v2', site: 'east', endpoints: [endpoint] }
  cluster.put(dnsRecord({ status: { peers: [peer] } }))
  for (let i = 0; i < 2; i++) await reconciler.reconcile(KEY)
  t.match(lines, [
    /^\[WARNING\] a\/app: peer 192\.0\.2\.53:53: ignoring in status\.peers: endpoint of site east: .*192\.0\.2\.300/,
  ])
  t.equal(lines.length, 1)
})
