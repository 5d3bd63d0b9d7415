import t from 'tap'
import { systemClock } from '../../src/base/clock.ts'
import { Random } from '../../src/base/random.ts'
import { MetricsRegistry } from '../../src/base/telemetry/metrics.ts'
import { systemTimers } from '../../src/base/timers.ts'
import type { Client } from '../../src/egress/agent/client.ts'
import { KubernetesPolicies } from '../../src/egress/agent/sources/kubernetes-policies.ts'
import { printProblem } from '../../src/egress/agent/sources/policy-source.ts'
import { POLICY_KINDS } from '../../src/egress/policies/policy-kinds.ts'
import { openApi } from '../../src/kube/open-api.ts'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { recordLog } from '../support/recorded-log.ts'
import { until } from '../support/until.ts'
import { definePolicies, inVersion, policyPath, replaceVersion } from './policy-definitions.ts'

/** Ample: a busy machine takes long. */
const SEEN_MS = 120_000
const RBAC = '/apis/rbac.authorization.k8s.io/v1'
const PODS = '/api/v1/namespaces/shop/pods'
const READ = ['get', 'list', 'watch']
const GROUPS = [...new Set(POLICY_KINDS.map(({ resource }) => resource.group))]

/** What the agent may do: read, and nothing else. */
const RULES = [
  { apiGroups: [''], resources: ['pods', 'namespaces'], verbs: READ },
  ...GROUPS.map((group) => ({
    apiGroups: [group],
    resources: POLICY_KINDS.filter(({ resource }) => resource.group === group).map(
      ({ resource }) => resource.plural,
    ),
    verbs: READ,
  })),
]

t.setTimeout(CLUSTER_TEST_MS)

function kindOf(name: string) {
  return POLICY_KINDS.find(({ kind }) => kind === name)!
}

function body(kind: string, name: string, spec: object): object {
  const { resource } = kindOf(kind)
  return { apiVersion: `${resource.group}/${resource.version}`, kind, metadata: { name }, spec }
}

const cilium = (...names: string[]) => ({
  endpointSelector: { matchLabels: { app: 'web' } },
  egress: names.map((matchName) => ({ toFQDNs: [{ matchName }] })),
})

t.test('policies and Pods of the real API server', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
  const metadata = { name: 'node-agent' }
  await cluster.must('POST', `${RBAC}/clusterroles`, { metadata, rules: RULES })
  await cluster.must('POST', `${RBAC}/clusterrolebindings`, {
    metadata,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: metadata.name },
    subjects: [{ kind: 'User', name: 'viewer' }],
  })
  await cluster.createNamespace('shop')
  await definePolicies(cluster, ['CiliumNetworkPolicy'])
  const account = '/api/v1/namespaces/shop/serviceaccounts'
  await until(
    async () =>
      (await cluster.call('POST', account, { metadata: { name: 'default' } })).status !== 403,
    'the service account',
  )

  const { lines, log } = recordLog()
  const place = { kubeconfig: cluster.kubeconfig('viewer'), context: '' }
  const { api } = await openApi(place)
  const parts = { clock: systemClock, timers: systemTimers, random: new Random(1), log }
  const source = new KubernetesPolicies({
    ...{ ...parts, api, node: 'n1', metrics: new MetricsRegistry() },
    dialect: 'cilium-1.19',
  })
  t.teardown(() => source.close())
  let clients: readonly Client[] | undefined
  source.onChange((all) => {
    clients = all
  })
  source.start()

  /** `POD: NAME,NAME` of each client; the names of all its rules. */
  const shown = (): readonly string[] | undefined =>
    clients?.map(({ id, rules }) => {
      const names = rules.lists.flat().flatMap((tier) => tier.rules.flatMap((rule) => rule.names))
      return `${id.split('/')[1]}: ${names.map(({ text }) => text).join(',')}`
    })
  const becomes = async (...want: string[]) => {
    const isSo = () => JSON.stringify(shown()) === JSON.stringify(want)
    await until(isSo, want.join('; '), SEEN_MS).catch((error: Error) => {
      throw new Error(`${error.message}, but ${shown()?.join('; ')}; ${source.reason}`)
    })
    t.pass(want.join('; '))
  }
  let address = 0
  const addPod = async (name: string, nodeName: string, labels: object) => {
    const container = { name: 'c', image: 'none' }
    const spec = { nodeName, containers: [container], automountServiceAccountToken: false }
    await cluster.must('POST', PODS, { metadata: { name, labels }, spec })
    const podIPs = [{ ip: `10.1.0.${++address}` }, { ip: `fd00::${address}` }]
    const status = { phase: 'Running', podIP: podIPs[0]!.ip, podIPs }
    await cluster.must('PATCH', `${PODS}/${name}/status`, { status })
  }
  const remove = (path: string) => cluster.must('DELETE', path, { gracePeriodSeconds: 0 })

  await t.test('kinds that are not defined are no fault', async (t) => {
    await becomes()
    t.ok(source.isSynced)
    t.equal(source.reason, '')
    t.equal(lines.filter((line) => /is the CustomResourceDefinition/.test(line)).length, 7)
  })

  await t.test('Pods of this node, with a policy that comes after them', async (t) => {
    await addPod('web', 'n1', { app: 'web' })
    await addPod('other', 'n1', { app: 'db' })
    await addPod('away', 'n2', { app: 'web' })
    const policies = policyPath(kindOf('CiliumNetworkPolicy'), 'shop')
    await cluster.must('POST', policies, body('CiliumNetworkPolicy', 'p', cilium('a.example')))
    await becomes('web: a.example')
    t.strictSame(clients?.[0]?.addresses, ['10.1.0.1', 'fd00::1'])
    t.match(clients?.[0]?.id, /^shop\/web\/[0-9a-f-]{36}$/)
    const spec = cilium('a.example', 'b.example')
    await cluster.must('PATCH', `${policies}/p`, { spec })
    await becomes('web: a.example,b.example')
    await addPod('web2', 'n1', { app: 'web' })
    await becomes('web: a.example,b.example', 'web2: a.example,b.example')
    t.equal(clients?.[0]?.rules, clients?.[1]?.rules)
    await cluster.must('PATCH', `${PODS}/web2`, { metadata: { labels: { app: 'db' } } })
    await becomes('web: a.example,b.example')
    await cluster.must('PATCH', `${PODS}/web2/status`, { status: { phase: 'Succeeded' } })
    await cluster.must('PATCH', `${PODS}/web2`, { metadata: { labels: { app: 'web' } } })
    const moon = { endpointSelector: {}, egress: [{ toEntities: ['moon'] }] }
    await cluster.must('POST', policies, body('CiliumNetworkPolicy', 'q', moon))
    await until(() => source.problems.length === 1, 'the problem', SEEN_MS)
    t.match(source.problems.map(printProblem), [/^CiliumNetworkPolicy shop\/q: spec\.egress\[0\]/])
    await becomes('other: ', 'web: a.example,b.example')
    await remove(`${policies}/q`)
    await becomes('web: a.example,b.example')
    t.strictSame(source.problems, [])
    await remove(`${policies}/p`)
    await becomes()
  })

  await t.test('a kind that is defined later, and labels of its Namespace', async () => {
    await definePolicies(cluster, ['EgressFirewall'])
    await definePolicies(cluster, ['ClusterNetworkPolicy'], 'v1alpha2')
    const wide = policyPath(inVersion(kindOf('ClusterNetworkPolicy'), 'v1alpha2'))
    const subject = { namespaces: { matchLabels: { team: 'red' } } }
    const egress = [{ action: 'Accept', to: [{ domainNames: ['*.c.example'] }] }]
    const spec = { tier: 'Admin', priority: 1, subject, egress }
    const red = body('ClusterNetworkPolicy', 'red', spec)
    const apiVersion = 'policy.networking.k8s.io/v1alpha2'
    await cluster.must('POST', wide, { ...red, apiVersion })
    await becomes()
    const label = (team: string | null) =>
      cluster.must('PATCH', '/api/v1/namespaces/shop', { metadata: { labels: { team } } })
    await label('red')
    await becomes('other: *.c.example', 'web: *.c.example')
    const firewalls = policyPath(kindOf('EgressFirewall'), 'shop')
    const rules = { egress: [{ type: 'Allow', to: { dnsName: 'd.example' } }] }
    await cluster.must('POST', firewalls, body('EgressFirewall', 'default', rules))
    await becomes('other: *.c.example,d.example', 'web: *.c.example,d.example')
    await label('blue')
    await becomes('other: d.example', 'web: d.example')
  })

  await t.test('a version of a kind that takes the place of another', async (t) => {
    const kind = kindOf('ClusterNetworkPolicy')
    await replaceVersion(cluster, kind, 'v1beta1')
    const egress = [{ action: 'Accept', to: [{ domainNames: ['e.example'] }] }]
    const spec = { tier: 'Admin', priority: 2, subject: { namespaces: {} }, egress }
    await cluster.must('POST', policyPath(kind), body(kind.kind, 'all', spec))
    await becomes('other: e.example,d.example', 'web: e.example,d.example')
    const followed = lines.flatMap(
      (line) => /version (\S+) of .* is followed/.exec(line)?.[1] ?? [],
    )
    t.strictSame(followed, ['v1alpha2', 'v1beta1'])
    await remove(`${policyPath(kind)}/all`)
    await becomes('other: d.example', 'web: d.example')
  })

  await t.test('what changes while the API server is away', async () => {
    await cluster.killServer()
    await until(() => source.reason !== '', 'the reason', SEEN_MS)
    await becomes('other: d.example', 'web: d.example')
    await cluster.startServer()
    await remove(`${PODS}/other`)
    await becomes('web: d.example')
    await until(() => source.reason === '', 'no reason', SEEN_MS)
  })
})
