import t from 'tap'
import { RRType } from '../../src/dns/iana/index.ts'
import { CLUSTER_TEST_MS } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { until } from '../support/until.ts'
import {
  DEFINITIONS,
  DELTA10,
  GKE,
  ownAddress,
  POLICIES,
  SEEN_MS,
  Shop,
  to,
  Zone,
} from './fqdn-policies.ts'

t.setTimeout(CLUSTER_TEST_MS)

t.test('FQDNNetworkPolicies with the real API server', needsCluster(), async (t) => {
  const host = ownAddress()
  if (host === undefined) return void t.comment('skipped: this machine has only loopback addresses')
  const shop = await Shop.start(t)
  const { cluster } = shop
  const zones = [await Zone.open(t, host), await Zone.open(t, host)]
  for (const [i, { server }] of zones.entries()) await shop.addServer(`dns-${i}`, server)
  let operator = await shop.startOperator()

  await t.test('the NetworkPolicy has the addresses of all servers', async (t) => {
    zones[0]!.set('a.example', 300, '198.51.100.2', '2001:db8::1')
    zones[1]!.set('a.example', 300, '198.51.100.1', '198.51.100.2')
    const { metadata } = await shop.create('both', {
      podSelector: { matchLabels: { role: 'web' } },
      egress: [
        { to: [{ fqdns: ['a.example'] }], ports: [{ port: 443, protocol: 'TCP' }] },
        { to: [{ fqdns: ['missing.example'] }] },
      ],
      ingress: [{ from: [{ fqdns: ['A.example.'] }] }],
    })
    const all = '198.51.100.1/32 198.51.100.2/32 2001:db8::1/128'
    await shop.has('both', `${all} | ${all}`)
    const policy = await shop.networkPolicy('both')
    t.strictSame(policy.metadata.ownerReferences, [
      {
        apiVersion: DELTA10,
        kind: 'FQDNNetworkPolicy',
        name: 'both',
        uid: metadata.uid,
        controller: true,
        blockOwnerDeletion: true,
      },
    ])
    t.strictSame(policy.spec.podSelector, { matchLabels: { role: 'web' } })
    t.strictSame(policy.spec.egress[0].ports, [{ port: 443, protocol: 'TCP' }])
    t.strictSame([...policy.spec.policyTypes].sort(), ['Egress', 'Ingress'])
    await shop.isIn('both', 'Active')
    const { cache, reason } = await shop.status('both')
    t.equal(reason, undefined)
    t.strictSame(Object.keys(cache), ['A.example.', 'a.example', 'missing.example'])
    const expiry = Date.parse(cache['a.example'].ipExpiration['198.51.100.1/32'])
    t.ok(Math.abs(expiry - Date.now() - 3_600_000) < 60_000, 'an hour from now')
    const next = Date.parse(cache['a.example'].nextUdateTime)
    t.ok(Math.abs(next - Date.now() - 300_800) < 60_000, 'the TTL from now')
  })

  await t.test('a name that does not exist allows nothing', async (t) => {
    await shop.create('nothing', to('missing.example'))
    await shop.has('nothing', '')
    await shop.isIn('nothing', 'Active')
    const { spec } = await shop.networkPolicy('nothing')
    t.strictSame(spec.policyTypes, ['Egress'])
    zones[1]!.set('missing.example', 300, '198.51.100.3')
    const startMs = performance.now()
    await shop.has('nothing', '198.51.100.3/32')
    t.ok(performance.now() - startMs < 60_000, 'within seconds, not an hour')
  })

  await t.test('a NetworkPolicy of another controller is not touched', async (t) => {
    const owner = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'u1' }
    const before = await cluster.must('POST', POLICIES, {
      metadata: { name: 'foreign', ownerReferences: [{ ...owner, controller: true }] },
      spec: { podSelector: {}, policyTypes: ['Ingress'] },
    })
    await shop.create('foreign', to('a.example'))
    await shop.isIn('foreign', 'Pending')
    t.match((await shop.status('foreign')).reason, /managed by Deployment web/)
    const after = await shop.networkPolicy('foreign')
    t.equal(after.metadata.resourceVersion, before.metadata.resourceVersion)
    await cluster.must('PATCH', `${POLICIES}/foreign`, { metadata: { ownerReferences: null } })
    await shop.has('foreign', '198.51.100.1/32 198.51.100.2/32 2001:db8::1/128')
    await shop.isIn('foreign', 'Active')
  })

  await t.test('the annotation leaves out IPv6 addresses', async (t) => {
    zones[0]!.set('dual.example', 300, '198.51.100.4', '2001:db8::4')
    const annotations = { 'fqdnnetworkpolicies.networking.gke.io/aaaa-lookups': 'skip' }
    await shop.create('v4', to('dual.example'), { annotations })
    await shop.has('v4', '198.51.100.4/32')
    t.equal(zones[0]!.count('dual.example', RRType.AAAA), 0)
    await cluster.must('PATCH', shop.path('v4'), { metadata: { annotations: null } })
    await shop.has('v4', '198.51.100.4/32 2001:db8::4/128')
  })

  await t.test('a policy of the API of Google', async () => {
    await shop.create('google', to('a.example'), {}, GKE)
    await shop.has('google', '198.51.100.1/32 198.51.100.2/32 2001:db8::1/128')
    await shop.isIn('google', 'Active', GKE)
  })

  await t.test('an edit is applied at once', async () => {
    zones[0]!.set('b.example', 300, '198.51.100.5')
    await shop.create('edit', to('a.example'))
    await shop.has('edit', '198.51.100.1/32 198.51.100.2/32 2001:db8::1/128')
    await cluster.must('PATCH', shop.path('edit'), { spec: to('b.example') })
    await shop.has('edit', '198.51.100.5/32')
  })

  await t.test('a NetworkPolicy that is changed or deleted is restored', async () => {
    await cluster.must('PATCH', `${POLICIES}/edit`, { spec: { egress: [{}] } })
    await shop.has('edit', '198.51.100.5/32')
    await cluster.must('DELETE', `${POLICIES}/edit`)
    await shop.has('edit', '198.51.100.5/32')
  })

  await t.test('addresses that are never allowed', async (t) => {
    zones[0]!.set('bad.example', 300, '127.0.0.1', '169.254.169.254', '::1', '198.51.100.6')
    await shop.create('bad', to('bad.example'))
    await shop.has('bad', '198.51.100.6/32')
    const events = '/apis/events.k8s.io/v1/namespaces/shop/events'
    const notes = async (): Promise<string> => {
      const { items } = await cluster.must('GET', events)
      return items.map(({ reason, note }: Record<string, string>) => `${reason} ${note}`).join('\n')
    }
    const denied = /AddressDenied bad.example: 127.0.0.1 is a loopback address/
    await until(async () => denied.test(await notes()), 'the Event', SEEN_MS)
    const failed = /LookupFailed missing.example.: NXDOMAIN/
    t.match(await notes(), failed)
  })

  await t.test('a change in DNS', async (t) => {
    zones[0]!.set('quick.example', 1, '198.51.100.7')
    zones[1]!.set('quick.example', 1, '198.51.100.7')
    await shop.create('quick', to('quick.example'))
    await shop.has('quick', '198.51.100.7/32')
    const waits: number[] = []
    for (const last of [8, 9, 10]) {
      const count = zones[1]!.count('quick.example', RRType.AAAA)
      const isAsked = () => zones[1]!.count('quick.example', RRType.AAAA) > count
      await until(isAsked, 'the next lookup', SEEN_MS)
      // The TTL that the servers have just sent ends in a second.
      const endMs = performance.now() + 1000
      zones[0]!.set('quick.example', 1, `198.51.100.${last}`)
      const isAllowed = async () => (await shop.cidrs('quick')).includes(`198.51.100.${last}/32`)
      await until(isAllowed, 'the new address', SEEN_MS)
      waits.push(Math.round(performance.now() - endMs))
    }
    t.comment(`from the end of the TTL to the NetworkPolicy: ${waits.join(', ')} ms`)
    t.match(await shop.cidrs('quick'), /100.7.32/, 'old addresses are kept')
  })

  await t.test('nothing is written while nothing changes', async (t) => {
    const versions = async () => {
      const status = await cluster.must('GET', shop.path('quick'))
      const policy = await shop.networkPolicy('quick')
      return `${status.metadata.resourceVersion} ${policy.metadata.resourceVersion}`
    }
    const before = await versions()
    const count = zones[0]!.count('quick.example')
    await until(() => zones[0]!.count('quick.example') > count + 2, 'three lookups', SEEN_MS)
    t.equal(await versions(), before)
  })

  await t.test('a restart loses no address, whether DNS answers or not', async (t) => {
    zones[0]!.set('a.example', 300, '198.51.100.20')
    zones[1]!.set('a.example', 300, '198.51.100.20')
    const before = await shop.cidrs('both')
    const google = await shop.cidrs('google')
    await operator.kill()
    for (const { server } of zones) await server.stop()
    operator = await shop.startOperator()
    await shop.create('late', to('late.example'))
    await shop.has('late', '')
    // Its name is in the status of `both`, which need not be resolved again for 300 s.
    await shop.create('same', to('a.example'))
    await shop.has('same', '')
    t.equal(await shop.cidrs('both'), before)
    t.equal(await shop.cidrs('google'), google)
    for (const { server } of zones) await server.start()
    zones[0]!.set('late.example', 300, '198.51.100.21')
    await shop.has('late', '198.51.100.21/32')
    await shop.has('same', '198.51.100.20/32')
    await shop.has('google', '198.51.100.20/32')
    t.match(await shop.cidrs('both'), /198.51.100.1.32/)
  })

  await t.test('no DNS servers', async (t) => {
    for (const i of zones.keys()) await shop.removeServer(`dns-${i}`)
    await shop.isIn('both', 'Pending')
    t.match((await shop.status('both')).reason, /kube-dns has no ready endpoints/)
    t.match(await shop.cidrs('both'), /198.51.100.1.32/)
  })

  await t.test('a status from before, and addresses that expire', async () => {
    await operator.stop()
    await shop.create('cached', to('cached.example'))
    const at = (seconds: number) => `${new Date(Date.now() + seconds * 1000).toISOString()}`
    const ipExpiration = {
      '10.0.0.1/32': at(600),
      '2001:db8::9/128': at(600),
      '10.0.0.2/32': at(-60),
      // A busy machine needs seconds to start the operator.
      '10.0.0.3/32': at(20),
    }
    const cache = { 'cached.example': { nextUdateTime: at(600), ipExpiration } }
    await cluster.must('PATCH', `${shop.path('cached')}/status`, {
      status: { state: 'Active', cache },
    })
    operator = await shop.startOperator('--ip-expiration-period=60s')
    await shop.has('cached', '10.0.0.1/32 10.0.0.3/32 2001:db8::9/128')
    await shop.has('cached', '10.0.0.1/32 2001:db8::9/128')
    const kept = async (): Promise<string> => {
      const { cache } = await shop.status('cached')
      return Object.keys(cache['cached.example'].ipExpiration).join(' ')
    }
    // The status is written after the NetworkPolicy.
    await until(async () => (await kept()) === '10.0.0.1/32 2001:db8::9/128', 'status', SEEN_MS)
  })

  await t.test('a deleted definition', async (t) => {
    await cluster.must('DELETE', `${DEFINITIONS}/fqdnnetworkpolicies.networking.gke.io`)
    const isGone = async () => (await cluster.call('GET', shop.path('', GKE))).status === 404
    await until(isGone, 'the definition to go', SEEN_MS)
    await shop.create('after', to('after.example'))
    await shop.has('after', '')
    shop.checkOutput(t)
  })

  await t.test('an address is stored before it is allowed', async (t) => {
    const path = '/apis/rbac.authorization.k8s.io/v1/clusterroles/sextant-fqdn-network-policy'
    const { rules } = await cluster.must('GET', path)
    const others = rules.filter(
      ({ resources }: { resources: string[] }) => !resources.includes('fqdnnetworkpolicies/status'),
    )
    await cluster.must('PATCH', path, { rules: others })
    zones[0]!.set('unstored.example', 300, '198.51.100.30')
    for (const [i, { server }] of zones.entries()) await shop.addServer(`dns-${i}`, server)
    await shop.create('unstored', to('unstored.example'))
    const isRefused = (): boolean => /unstored.*forbidden/.test(operator.output)
    await until(isRefused, 'the refusal', SEEN_MS)
    t.equal(await shop.cidrs('unstored'), 'none')
    await cluster.must('PATCH', path, { rules })
    await shop.has('unstored', '198.51.100.30/32')
    await shop.isIn('unstored', 'Active')
  })
})
