import t from 'tap'
import { MetricsRegistry } from '../../../src/base/telemetry/metrics.ts'
import type { ApiObject } from '../../../src/kube/api.ts'
import { findConflictsOf } from '../../../src/operator/conflicts/find-in-cluster.ts'
import { withoutForeignNames } from '../../../src/operator/conflicts/host-rights.ts'
import { OperatorMetrics } from '../../../src/operator/metrics.ts'
import { decide } from '../../../src/operator/plan/decide.ts'
import { Reporter } from '../../../src/operator/reconcile/reporter.ts'
import { DnsRecordView } from '../../../src/operator/record/record-view.ts'
import { scanShare } from '../../../src/records/host-share.ts'
import { ToyCluster } from '../../support/operator-cluster.ts'
import { at, dnsRecord, secret } from '../../support/operator-objects.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { FakeClock } from '../../support/setup.ts'
import { toyReconciler } from '../../support/toy-reconciler.ts'

const ZONE = 'k.example.com'
const A = (name: string, target = '192.0.2.1'): ApiObject => {
  return { dnsName: name, recordType: 'A', recordTTL: 60, targets: [target] }
}

interface Given {
  readonly namespace: string
  readonly second: number
  readonly rootHost: string
  readonly endpoints: readonly ApiObject[]
  readonly delegate?: boolean
}

const APP = `app.${ZONE}`
const GW: Given = { namespace: 'gw', second: 1, rootHost: APP, endpoints: [A(APP)] }
const TAKEN = A(APP, '203.0.113.66')

function stage(given: readonly Given[], shares: readonly string[] = []) {
  const cluster = new ToyCluster()
  const { log, lines } = recordLog()
  const metrics = new MetricsRegistry()
  const events: string[] = []
  const record = (_: unknown, { reason, note }: { reason: string; note: string }) =>
    void events.push(`${reason}: ${note}`)
  const reporter = new Reporter({ record }, new OperatorMetrics(metrics), log)
  const put = ({ namespace, second, rootHost, endpoints, delegate }: Given) => {
    const metadata = { creationTimestamp: `2026-01-01T00:00:0${second}Z` }
    const spec = delegate ? { rootHost, endpoints, delegate } : { rootHost, endpoints }
    cluster.put(dnsRecord({ namespace, uid: `uid-${namespace}`, metadata, spec }))
    cluster.put(secret(namespace, 'coredns', { ZONES: ZONE, NAMESERVERS: '192.0.2.53' }))
  }
  for (const one of given) put(one)
  const reconciler = toyReconciler(cluster, new FakeClock(), {
    listener: reporter,
    shares: shares.map((text) => {
      const share = scanShare(text.split(' '))
      if (typeof share === 'string') throw new Error(share)
      return share
    }),
  })
  const settle = async (): Promise<void> => {
    for (const key of [...cluster.records.keys()].sort()) await reconciler.reconcile(key)
  }
  const names = (key: string): readonly string[] => {
    const endpoints = (at(cluster.stored(key), 'spec', 'endpoints') ?? []) as readonly ApiObject[]
    return endpoints.map(({ dnsName }) => String(dnsName))
  }
  const condition = (key: string, type: string): string => {
    const all = at(cluster.stored(key), 'status', 'conditions') as readonly ApiObject[]
    const found = all.find((one) => one.type === type)
    return `${found?.status}: ${found?.message}`
  }
  return { cluster, settle, names, condition, put, lines, events, metrics }
}

const REFUSED = `${APP}: not served: namespace gw had ${APP} first; to serve it, add --share-hosts "${APP} evil" to the operator`

t.test('the host of another namespace is not published', async (t) => {
  const evil = { namespace: 'evil', second: 2, rootHost: APP, endpoints: [TAKEN] }
  const { settle, condition, names, cluster, put, lines, events, metrics } = stage([GW, evil])
  await settle()
  t.equal(cluster.stored('evil/merged-app'), undefined)
  t.equal(cluster.stored('evil/local-app'), undefined)
  t.match(
    condition('evil/app', 'Ready'),
    `False: The DNS provider failed to ensure the record: ${REFUSED}`,
  )
  t.match(condition('evil/app', 'EndpointsServed'), `False: ${REFUSED}`)
  t.match(condition('gw/app', 'Ready'), /^True/)
  t.notMatch(condition('gw/app', 'EndpointsServed'), /^False/)
  t.same(names('gw/merged-app'), [APP])
  t.match(lines.join('\n'), /WARNING.*evil\/app: app\.k\.example\.com: not served/)
  t.ok(events.includes(`HostNotOwned: ${REFUSED}`))
  t.match(
    await metrics.print(),
    /sextant_operator_hosts_not_owned\{dns_record_name="app",dns_record_namespace="evil"\} 1/,
  )
  put({ ...GW, rootHost: `www.${ZONE}`, endpoints: [A(`www.${ZONE}`)] })
  await settle()
  t.same(names('evil/merged-app'), [APP], 'once the host is free')
  put(GW)
  await settle()
  t.equal(cluster.stored('evil/merged-app'), undefined, 'and taken again')
  t.equal(cluster.stored('evil/local-app'), undefined)
})

t.test('a record keeps the names that are its own', async (t) => {
  const endpoints = [
    TAKEN,
    A(`free.${ZONE}`),
    { ...A(ZONE), recordType: 'NS', targets: ['ns.evil.example'] },
  ]
  const evil = { namespace: 'evil', second: 2, rootHost: ZONE, endpoints }
  const { settle, condition, names } = stage([GW, evil])
  await settle()
  t.same(names('evil/merged-app'), [`free.${ZONE}`])
  const local = names('evil/local-app').filter((name) => !/^(v2|w|g|o2)\./.test(name))
  t.same(local, [`free.${ZONE}.kdrnt`])
  t.match(condition('evil/app', 'Ready'), /^True/)
  t.match(condition('evil/app', 'EndpointsServed'), /^False: app\.k\.example\.com: not served/)
  t.match(
    condition('evil/app', 'EndpointsServed'),
    /namespace gw had names below k\.example\.com first/,
  )
})

t.test('a share allows it', async (t) => {
  const evil = { namespace: 'evil', second: 2, rootHost: APP, endpoints: [TAKEN] }
  for (const share of [`${APP} evil`, '. *', `${ZONE} other evil`]) {
    const { settle, names } = stage([GW, evil], [share])
    await settle()
    t.same(names('evil/merged-app'), [APP], share)
  }
})

t.test('a delegating record is judged like others', async (t) => {
  const evil = { namespace: 'evil', second: 2, rootHost: APP, endpoints: [TAKEN], delegate: true }
  const { settle, condition, cluster } = stage([GW, evil])
  await settle()
  t.match(
    condition('evil/app', 'Ready'),
    `False: The DNS provider failed to ensure the record: ${REFUSED}`,
  )
  t.same(
    [...cluster.records.keys()].filter((key) => /authoritative/.test(key)),
    [],
  )
})

t.test('a record of another provider has no hosts', async (t) => {
  const evil = { namespace: 'evil', second: 2, rootHost: APP, endpoints: [TAKEN] }
  const { settle, names, cluster } = stage([{ ...GW, namespace: 'other' }, evil])
  cluster.put(secret('other', 'coredns', { ZONES: 'example.net' }, { type: 'kuadrant.io/aws' }))
  await settle()
  t.same(names('evil/merged-app'), [APP])
})

t.test('each record is decided once until it or its Secret changes', async (t) => {
  const { cluster, put } = stage([])
  const endpoints = [A(APP)]
  for (let i = 0; i < 30; i++) put({ namespace: `n${i}`, second: 1, rootHost: APP, endpoints })
  const { get } = Object.getOwnPropertyDescriptor(DnsRecordView.prototype, 'resource')!
  let decisions = 0
  Object.defineProperty(DnsRecordView.prototype, 'resource', {
    configurable: true,
    get(this: DnsRecordView) {
      decisions++
      return get!.call(this)
    },
  })
  t.teardown(() => {
    Object.defineProperty(DnsRecordView.prototype, 'resource', { configurable: true, get: get! })
  })
  const scene = { view: cluster, role: 'primary', site: 'x', shares: [] } as const
  const judge = (key: string): number => {
    const record = cluster.record(key)!
    const action = decide(record, cluster.secretsOf(record.namespace))
    if (action.kind !== 'publish') throw new Error(action.kind)
    decisions = 0
    const { refused } = withoutForeignNames(action.publishing, scene)
    t.equal(refused.length, key === 'n0/app' ? 0 : 1)
    return decisions
  }
  t.equal(judge('n0/app'), 30)
  t.equal(judge('n1/app'), 0)
  put({ namespace: 'n5', second: 2, rootHost: APP, endpoints })
  t.equal(judge('n0/app'), 1, 'the record and its Secret are other objects')
  cluster.put(secret('n6', 'coredns', { ZONES: 'example.net', NAMESERVERS: '192.0.2.53' }))
  t.equal(judge('n0/app'), 1)
})

t.test('the conflicts of a host read its claims once', async (t) => {
  const { cluster } = stage([])
  const RECORDS = 30
  cluster.put(secret('a', 'coredns', { ZONES: ZONE, NAMESERVERS: '192.0.2.53' }))
  for (let i = 0; i < RECORDS; i++) {
    const endpoints = [{ ...A(APP), setIdentifier: `s${i}` }]
    cluster.put(
      dnsRecord({ namespace: 'a', name: `r${i}`, uid: `${i}`, spec: { rootHost: APP, endpoints } }),
    )
  }
  let reads = 0
  const claimantsAt = cluster.claimantsAt.bind(cluster)
  cluster.claimantsAt = (name) => {
    reads++
    return claimantsAt(name)
  }
  const action = decide(cluster.record('a/r0')!, cluster.secretsOf('a'))
  if (action.kind !== 'publish') throw new Error(action.kind)
  findConflictsOf(action.publishing, { view: cluster, role: 'primary', site: 'x' })
  t.equal(reads, 2, 'the host and the apex')
})
