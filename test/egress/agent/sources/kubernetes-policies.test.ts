import t, { type Test } from 'tap'
import { Random } from '../../../../src/base/random.ts'
import { MetricsRegistry } from '../../../../src/base/telemetry/metrics.ts'
import type { Client } from '../../../../src/egress/agent/client.ts'
import { KubernetesPolicies } from '../../../../src/egress/agent/sources/kubernetes-policies.ts'
import { printProblem } from '../../../../src/egress/agent/sources/policy-source.ts'
import { NAMESPACES, PODS, type PolicyKind } from '../../../../src/egress/policies/policy-kinds.ts'
import type { ApiObject } from '../../../../src/kube/api.ts'
import { MemoryApi } from '../../../support/memory-api.ts'
import { recordLog } from '../../../support/recorded-log.ts'
import { FakeClock, FakeTimers } from '../../../support/setup.ts'
import { kindOf, object, pod } from '../../policies/compiled.ts'

const CNP = 'cilium.io/v2 CiliumNetworkPolicy'
const isolating = (app: string) => ({
  endpointSelector: { matchLabels: { app } },
  egress: [{ toFQDNs: [{ matchName: 'a.example' }] }],
})

const followed = (version: string) =>
  `[INFO] clusternetworkpolicies in all namespaces: version ${version} of policy.networking.k8s.io is followed`

/** A source over an API in memory; `absent`: kinds that it does not have. */
function follow(t: Test, absent: Readonly<Record<string, number>> = {}) {
  const api = new MemoryApi()
  const statuses = new Map(Object.entries(absent))
  api.refuse = ({ path }) => statuses.get(path.split('/').at(-1)!)
  const timers = new FakeTimers()
  const { lines, log } = recordLog()
  const metrics = new MetricsRegistry()
  const random = new Random(1)
  const source = new KubernetesPolicies({
    ...{ api, node: 'n1', clock: new FakeClock(), timers, random, log, metrics },
    dialect: 'cilium-1.19',
  })
  t.teardown(() => source.close())
  const calls: (readonly Client[])[] = []
  source.onChange((clients) => calls.push(clients))
  const put = (one: ApiObject) => api.put(kindOf(one).resource, one)
  const drop = (kind: PolicyKind, key: string) => api.drop(kind.resource, key)
  const settle = async (ms = 10) => {
    for (let i = 0; i < 20; i++) await new Promise((turn) => setImmediate(turn))
    await timers.advance(ms)
    for (let i = 0; i < 20; i++) await new Promise((turn) => setImmediate(turn))
  }
  const ids = () => calls.at(-1)?.map(({ id }) => id)
  return { api, source, metrics, lines, statuses, calls, put, drop, settle, ids }
}

t.test('clients come with the first lists, and change with the objects', async (t) => {
  const { put, drop, settle, source, calls, ids, lines } = follow(t)
  put(object('v1 Namespace', {}, { name: 'a' }))
  put(pod())
  put(pod({ name: 'db', labels: { app: 'db' }, ip: '10.0.0.2' }))
  put(object(CNP, isolating('web')))
  t.equal(source.reason, 'policies are not read yet')
  source.start()
  source.start()
  await settle()
  t.ok(source.isSynced)
  t.equal(source.reason, '')
  t.strictSame(ids(), ['a/web/u1'])
  t.equal(calls.length, 1)
  put(object(CNP, isolating('db')))
  await settle()
  t.strictSame(ids(), ['a/db/u1'])
  put(object(CNP, isolating('web'), { name: 'two' }))
  put(pod({ name: 'three', ip: '10.0.0.3' }))
  await settle()
  t.strictSame(ids(), ['a/db/u1', 'a/three/u1', 'a/web/u1'])
  t.ok(calls.length <= 4, 'changes of one turn are one')
  const late: (readonly Client[])[] = []
  const stop = source.onChange((clients) => late.push(clients))
  t.strictSame(late, [calls.at(-1)])
  stop()
  drop(PODS, 'a/db')
  await settle()
  t.strictSame(ids(), ['a/three/u1', 'a/web/u1'])
  t.equal(late.length, 1)
  drop(kindOf(object(CNP, {})), 'a/two')
  await settle()
  t.strictSame(ids(), [])
  t.strictSame(lines, [followed('v1beta1')])
  const before = calls.length
  source.close()
  put(object(CNP, isolating('web')))
  await settle()
  t.equal(calls.length, before)
})

t.test('what was deleted while the watch was cut is gone after the next list', async (t) => {
  const { api, put, drop, settle, source, ids, statuses } = follow(t)
  put(pod())
  put(object(CNP, isolating('web')))
  source.start()
  await settle()
  t.strictSame(ids(), ['a/web/u1'])
  statuses.set('ciliumnetworkpolicies', 410)
  api.cut()
  await settle(20_000)
  drop(kindOf(object(CNP, {})), 'a/web')
  t.strictSame(ids(), ['a/web/u1'], 'the known state is kept')
  statuses.clear()
  await settle(20_000)
  await settle(20_000)
  t.strictSame(ids(), [])
})

t.test('kinds that are not there are no fault, and are found later', async (t) => {
  const kinds = { ciliumclusterwidenetworkpolicies: 404, egressfirewalls: 404 }
  const { put, settle, source, ids, lines, statuses } = follow(t, kinds)
  put(pod())
  source.start()
  await settle()
  t.ok(source.isSynced)
  t.equal(source.reason, '')
  t.strictSame(ids(), [])
  const logged = lines.length
  t.equal(logged, 3, 'each is logged, and the version of another')
  for (let i = 0; i < 5; i++) await settle(20_000)
  t.equal(lines.length, logged, 'once')
  statuses.clear()
  put(object('cilium.io/v2 CiliumClusterwideNetworkPolicy', isolating('web')))
  await settle(20_000)
  t.strictSame(ids(), ['a/web/u1'])
})

t.test('a cluster that serves one version of ClusterNetworkPolicy', async (t) => {
  for (const version of ['v1beta1', 'v1alpha2']) {
    const { api, put, settle, source, ids, lines } = follow(t)
    const apiVersion = `policy.networking.k8s.io/${version}`
    api.refuse = ({ path }) => {
      return path.endsWith('/clusternetworkpolicies') && !path.includes(version) ? 404 : undefined
    }
    put(object('v1 Namespace', {}, { name: 'a' }))
    put(pod())
    const policy = object(`${apiVersion} ClusterNetworkPolicy`, {
      tier: 'Admin',
      priority: 1,
      subject: { namespaces: {} },
      egress: [{ action: 'Accept', to: [{ domainNames: ['a.example'] }] }],
    })
    api.put({ ...kindOf(policy).resource, version }, policy)
    source.start()
    await settle()
    t.ok(source.isSynced)
    t.equal(source.reason, '')
    t.strictSame(ids(), ['a/web/u1'], version)
    t.strictSame(lines, [followed(version)])
  }
})

t.test('without the right to read a kind it is not synced, with a reason', async (t) => {
  const { settle, source, calls } = follow(t, { egressfirewalls: 403 })
  source.start()
  await settle()
  t.notOk(source.isSynced)
  t.equal(calls.length, 0, 'the policies of the kind would be removed')
  t.match(source.reason, /egressfirewalls in all namespaces: .*needs get, list and watch/)
})

t.test('without Pods, Namespaces or a kind that fails it is not synced', async (t) => {
  for (const kind of ['pods', 'namespaces']) {
    const { settle, source, calls } = follow(t, { [kind]: 403 })
    source.start()
    await settle()
    t.notOk(source.isSynced, kind)
    t.match(source.reason, kind)
    t.equal(calls.length, 0)
  }
  const { put, settle, source, calls, ids, statuses } = follow(t, { ciliumnetworkpolicies: 500 })
  put(pod())
  put(object(CNP, isolating('web')))
  source.start()
  await settle()
  t.notOk(source.isSynced)
  t.equal(calls.length, 0)
  statuses.clear()
  await settle(20_000)
  t.ok(source.isSynced)
  t.strictSame(ids(), ['a/web/u1'])
})

t.test('problems are logged once, listed and counted', async (t) => {
  const { put, drop, settle, source, lines, metrics } = follow(t)
  const bad = (name: string) => {
    const spec = { endpointSelector: {}, egress: [{ toEntities: ['moon'] }] }
    return object(CNP, spec, { name })
  }
  const counted = async () => /^sextant_egress_policy_problems (\d+)$/m.exec(await metrics.print())
  put(bad('one'))
  source.start()
  await settle()
  t.equal(lines.shift(), followed('v1beta1'))
  const text =
    'CiliumNetworkPolicy a/one: spec.egress[0].toEntities[0]: "moon" is not supported: unknown entity'
  t.strictSame(source.problems.map(printProblem), [text])
  t.strictSame(lines, [`[WARNING] ${text}`])
  t.equal((await counted())?.[1], '1')
  put(bad('two'))
  await settle()
  t.equal(source.problems.length, 2)
  t.equal(lines.length, 2)
  t.equal((await counted())?.[1], '2')
  drop(kindOf(bad('one')), 'a/one')
  await settle()
  t.equal((await counted())?.[1], '1')
  put(bad('one'))
  await settle()
  t.equal(lines.length, 3, 'again after it was gone')
  source.close()
  t.equal((await counted())?.[1], '0')
})

t.test('labels of Namespaces', async (t) => {
  const { put, drop, settle, source, ids } = follow(t)
  const key = 'io.cilium.k8s.namespace.labels.team'
  const endpointSelector = { matchLabels: { [key]: 'red' } }
  put(pod())
  put(object('cilium.io/v2 CiliumClusterwideNetworkPolicy', { endpointSelector, egress: [{}] }))
  source.start()
  await settle()
  t.strictSame(ids(), [])
  put(object('v1 Namespace', {}, { name: 'a', labels: { team: 'red' } }))
  await settle()
  t.strictSame(ids(), ['a/web/u1'])
  drop(NAMESPACES, 'a')
  await settle()
  t.strictSame(ids(), [])
})
