import fc from 'fast-check'
import t from 'tap'
import { PolicyCompiler, type SelectedPod } from '../../../src/egress/policies/policy-compiler.ts'
import { NAMESPACES, PODS } from '../../../src/egress/policies/policy-kinds.ts'
import { OPEN_RULES } from '../../../src/egress/rules/rule.ts'
import type { ApiObject } from '../../../src/kube/api.ts'
import { compileClients, kindOf, object, type PodParts, pod } from './compiled.ts'

const CNP = 'cilium.io/v2 CiliumNetworkPolicy'
const CCNP = 'cilium.io/v2 CiliumClusterwideNetworkPolicy'
const CLUSTER = 'policy.networking.k8s.io/v1alpha2 ClusterNetworkPolicy'
const FIREWALL = 'k8s.ovn.org/v1 EgressFirewall'
const FQDN = 'networking.delta10.nl/v1alpha4 FQDNNetworkPolicy'
const GKE = 'networking.gke.io/v1alpha3 FQDNNetworkPolicy'
const NAMESPACE = 'v1 Namespace'

const isolating = (labels: object = {}) => ({
  endpointSelector: { matchLabels: labels },
  egress: [{ toFQDNs: [{ matchName: 'a.example' }] }],
})

class Stage {
  readonly compiler = new PolicyCompiler()

  put(...objects: readonly ApiObject[]): this {
    for (const one of objects) this.compiler.put(kindOf(one), one)
    return this
  }

  drop(one: ApiObject): this {
    const { namespace, name } = one.metadata as { namespace?: string; name: string }
    this.compiler.remove(kindOf(one), namespace === undefined ? name : `${namespace}/${name}`)
    return this
  }

  get clients(): readonly SelectedPod[] {
    return this.compiler.compile().clients
  }

  get ids(): string {
    return this.clients.map(({ id }) => id).join(' ')
  }

  /** `id address,address` of each client. */
  get addresses(): readonly string[] {
    return this.clients.map(({ id, addresses }) => `${id} ${addresses.join(',')}`)
  }
}

t.test('a Pod is a client while a policy selects it', async (t) => {
  const stage = new Stage()
  const policy = object(CNP, isolating({ app: 'web' }))
  t.equal(stage.put(pod()).ids, '')
  t.equal(stage.put(policy).ids, 'a/web/u1')
  t.equal(stage.put(pod({ labels: { app: 'db' } })).ids, '', 'its labels changed')
  t.equal(stage.put(pod()).ids, 'a/web/u1')
  t.equal(stage.put(object(CNP, isolating({ app: 'db' }))).ids, '', 'the policy changed')
  t.equal(stage.put(policy).ids, 'a/web/u1')
  t.equal(stage.drop(policy).ids, '')
  t.equal(stage.put(policy).drop(pod()).ids, '')
  t.equal(stage.put(pod({ uid: 'u2' })).ids, 'a/web/u2', 'another Pod of that name')
  t.strictSame(stage.compiler.keys(PODS), ['a/web'])
  t.strictSame(stage.compiler.keys(kindOf(policy)), ['a/web'])
  t.strictSame(stage.compiler.keys(NAMESPACES), [])
})

t.test('Pods without an address of their own are no clients', async (t) => {
  const table: readonly (readonly [PodParts, string])[] = [
    [{}, '10.0.0.1'],
    [{ ips: ['10.0.0.1', '2001:DB8:0::1'] }, '10.0.0.1,2001:db8::1'],
    [{ ips: ['2001:db8::1', '10.0.0.1', '10.0.0.2'] }, '10.0.0.1,2001:db8::1'],
    [{ ips: [] }, ''],
    [{ ips: ['10.0.0.256'] }, ''],
    [{ hostNetwork: true }, ''],
    [{ phase: 'Succeeded' }, ''],
    [{ phase: 'Failed' }, ''],
    [{ phase: 'Pending' }, '10.0.0.1'],
  ]
  for (const [parts, want] of table) {
    const { addresses } = new Stage().put(object(CNP, isolating()), pod(parts))
    t.strictSame(addresses, want === '' ? [] : [`a/web/u1 ${want}`], JSON.stringify(parts))
  }
  const old = { ...pod(), status: { podIP: '10.0.0.9' } }
  t.strictSame(new Stage().put(object(CNP, isolating()), old).addresses, ['a/web/u1 10.0.0.9'])
  const bare = { apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'a', name: 'x' } }
  t.strictSame(new Stage().put(object(CNP, isolating()), bare).addresses, [])
})

t.test('an address belongs to the last Pod that was created with it', async (t) => {
  const stage = new Stage().put(object(CNP, isolating()))
  const first = pod({ name: 'x', created: '2026-01-01T00:00:00Z' })
  const second = pod({ name: 'b', created: '2026-01-01T00:00:01Z' })
  t.strictSame(stage.put(first).addresses, ['a/x/u1 10.0.0.1'])
  t.strictSame(stage.put(second).addresses, ['a/b/u1 10.0.0.1'])
  t.strictSame(stage.drop(second).addresses, ['a/x/u1 10.0.0.1'])
  const free = pod({ namespace: 'free', created: '2026-01-01T00:00:02Z' })
  t.strictSame(stage.put(free).addresses, [], 'also if no policy selects that one')
  const ending = { ...free, metadata: { ...(free.metadata as object), deletionTimestamp: 'x' } }
  t.strictSame(stage.put(ending).addresses, ['a/x/u1 10.0.0.1'], 'unless it is being deleted')
})

t.test('labels of Namespaces', async (t) => {
  const stage = new Stage().put(pod())
  const subject = { namespaces: { matchLabels: { team: 'red' } } }
  const egress = [{ action: 'Deny', to: [{ networks: ['::/0'] }] }]
  stage.put(object(CLUSTER, { tier: 'Admin', priority: 1, subject, egress }))
  const key = 'k8s:io.cilium.k8s.namespace.labels.team'
  stage.put(object(CCNP, isolating({ [key]: 'blue' })))
  const namespace = (team: string) => object(NAMESPACE, {}, { name: 'a', labels: { team } })
  t.strictSame(stage.clients, [])
  const listsOf = () => stage.clients[0]?.rules.lists[0]?.map(({ otherwise }) => otherwise)
  stage.put(namespace('red'))
  t.strictSame(listsOf(), ['pass'])
  stage.put(namespace('blue'))
  t.strictSame(listsOf(), ['deny'])
  t.equal(stage.put(namespace('green')).ids, '')
  stage.put(namespace('red'))
  t.equal(stage.ids, 'a/web/u1')
  t.equal(stage.drop(namespace('red')).ids, '')
})

t.test('what did not change stays the same object', async (t) => {
  const stage = new Stage()
  stage.put(object(CNP, isolating({ app: 'web' })), object(CNP, isolating(), { name: 'all' }))
  stage.put(pod(), pod({ name: 'two', ip: '10.0.0.2' }), pod({ name: 'b', labels: {}, ip: '::1' }))
  const before = stage.compiler.compile()
  const [b, two, web] = before.clients
  t.equal(web?.rules, two?.rules, 'one object for each set of policies')
  t.not(web?.rules, b?.rules)
  const again = { ...object(CNP, isolating({ app: 'web' })), status: { conditions: [] } }
  stage.put(again, pod(), object(NAMESPACE, {}, { name: 'a' }))
  t.equal(stage.compiler.compile(), before)
  stage.put(pod({ name: 'two', ip: '10.0.0.3' }))
  const after = stage.compiler.compile()
  t.equal(after.clients[0], b)
  t.not(after.clients[1], two)
  t.equal(after.clients[1]?.rules, two?.rules)
  t.equal(after.clients[2], web)
  t.equal(after.problems, before.problems)
  stage.put(object(CNP, isolating({ app: 'web' }), { namespace: 'other' }))
  t.equal(stage.compiler.compile(), after, 'a policy of another namespace')
})

t.test('problems come and go with their objects', async (t) => {
  const stage = new Stage()
  const bad = object(CNP, { endpointSelector: {}, egress: [{ toEntities: ['moon'] }] })
  const worse = object(FIREWALL, { egress: [{ type: 'Allow', to: {} }] }, { name: 'default' })
  const objects = () => stage.compiler.compile().problems.map((problem) => problem.object)
  stage.put(worse, bad)
  t.strictSame(objects(), ['CiliumNetworkPolicy a/web', 'EgressFirewall a/default'])
  stage.put(object(CNP, isolating()))
  t.strictSame(objects(), ['EgressFirewall a/default'])
  stage.drop(worse)
  t.strictSame(objects(), [])
})

const NAMES = ['x', 'y', 'z'] as const
const arbitraryLabels = fc.record({ app: fc.constantFrom('web', 'db') })
const place = { namespace: fc.constantFrom('a', 'b'), name: fc.constantFrom(...NAMES) }
const cidr = fc.integer({ min: 1, max: 9 }).map((i) => `192.0.2.${i}/32`)
const arbitraryPod = fc
  .record({ ...place, labels: arbitraryLabels, ip: fc.constantFrom('::1', '::2', '::3') })
  .map((parts) => pod({ ...parts, uid: parts.ip }))
const arbitraryPolicy = fc
  .record({ ...place, labels: fc.oneof(arbitraryLabels, fc.constant({})), cidr, pick: fc.nat(6) })
  .map(({ namespace, name, labels, cidr: network, pick }) => {
    const pods = { matchLabels: labels }
    const ports = [{ ports: [{ port: '53' }], rules: { dns: [{ matchName: `${name}.x` }] } }]
    const cilium = {
      endpointSelector: pods,
      egress: [{ toCIDR: [network] }, { toEntities: ['cluster'], toPorts: ports }],
      egressDeny: [{ toCIDR: ['192.0.2.0/28'] }],
    }
    const subject = { pods: { namespaceSelector: {}, podSelector: pods } }
    const wide = { subject, egress: [{ action: 'Pass', to: [{ networks: [network] }] }] }
    const fqdn = { podSelector: pods, egress: [{ to: [{ fqdns: [`${name}.y`] }] }] }
    const firewall = { egress: [{ type: 'Deny', to: { cidrSelector: network } }] }
    const kinds = [
      [CNP, cilium],
      [CCNP, cilium],
      [CLUSTER, { ...wide, tier: 'Admin', priority: 7 }],
      [CLUSTER, { ...wide, tier: 'Baseline', priority: 7 }],
      [FQDN, fqdn],
      [GKE, fqdn],
      [FIREWALL, firewall],
    ] as const
    const [type, spec] = kinds[pick]!
    return object(type, spec, { namespace, name: type === FIREWALL ? 'default' : name })
  })
const arbitraryNamespace = fc
  .record({ name: place.namespace, labels: arbitraryLabels })
  .map((parts) => object(NAMESPACE, {}, parts))

/** The last object of each key: what an API has after all writes. */
function lastOf(objects: readonly ApiObject[]): readonly ApiObject[] {
  const last = new Map<string, ApiObject>()
  for (const one of objects) {
    const { namespace = '', name } = one.metadata as { namespace?: string; name: string }
    last.set(`${one.apiVersion} ${one.kind} ${namespace}/${name}`, one)
  }
  return [...last.values()]
}

t.test('property: the order of objects and of changes does not matter', async (t) => {
  const arbitraryObjects = fc.array(fc.oneof(arbitraryPod, arbitraryPolicy, arbitraryNamespace), {
    maxLength: 25,
  })
  const run = fc.property(
    arbitraryObjects.chain((all) => {
      const last = lastOf(all)
      const shuffled = fc.shuffledSubarray([...last], { minLength: last.length })
      return fc.tuple(fc.constant(all), shuffled, fc.array(fc.nat(30), { maxLength: 8 }))
    }),
    ([all, shuffled, drops]) => {
      const want = compileClients(lastOf(all))
      t.strictSame(compileClients(shuffled), want)
      const stage = new Stage()
      // Objects come, some go and come again, with and without a result in between.
      for (const [i, one] of all.entries()) {
        stage.put(one)
        const gone = all[drops[i % Math.max(1, drops.length)] ?? 0]
        if (i % 3 === 0 && gone !== undefined && all.indexOf(gone) <= i) stage.drop(gone)
        if (i % 2 === 0) stage.compiler.compile()
      }
      for (const one of shuffled) stage.put(one)
      t.strictSame(stage.compiler.compile(), want)
    },
  )
  fc.assert(run, { numRuns: 200 })
})

t.test('Pods that no policy selects are clients if it is asked for', async (t) => {
  const policy = object('cilium.io/v2 CiliumNetworkPolicy', {
    endpointSelector: { matchLabels: { app: 'web' } },
    egress: [{}],
  })
  const compiler = new PolicyCompiler({ dialect: 'cilium-1.19', everyPod: true })
  for (const one of [
    pod(),
    pod({ name: 'other', uid: 'u2', ip: '10.0.0.2', labels: {} }),
    pod({ name: 'host', uid: 'u3', ip: '10.0.0.3', hostNetwork: true }),
  ]) {
    compiler.put(kindOf(one), one)
  }
  const open = () =>
    compiler.compile().clients.map(({ id, rules }) => `${id} ${rules === OPEN_RULES}`)
  t.strictSame(open(), ['a/other/u2 true', 'a/web/u1 true'])
  const key = compiler.put(kindOf(policy), policy)
  t.strictSame(open(), ['a/other/u2 true', 'a/web/u1 false'])
  compiler.remove(kindOf(policy), key)
  t.strictSame(open(), ['a/other/u2 true', 'a/web/u1 true'])
})
