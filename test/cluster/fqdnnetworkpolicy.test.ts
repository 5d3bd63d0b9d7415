import { networkInterfaces } from 'node:os'
import t, { type Test } from 'tap'
import { RRClass, RRType } from '../../src/dns/iana/index.ts'
import { nameKey, scanName } from '../../src/dns/name/name.ts'
import { scanAddress } from '../../src/dns/text/address.ts'
import { CLUSTER_TEST_MS, Cluster, readCrd } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { RunningOperator } from '../support/operator.ts'
import { ScriptedServer } from '../support/scripted-server.ts'
import { until } from '../support/until.ts'

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const DELTA10 = 'networking.delta10.nl/v1alpha4'
const GKE = 'networking.gke.io/v1alpha3'
const SLICES = '/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices'
const POLICIES = '/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies'
const HTTPS = [{ port: 443, protocol: 'TCP' }]
/** Ample: a busy machine takes long. */
const SEEN_MS = 60_000

t.setTimeout(CLUSTER_TEST_MS)

/** An address of this machine that EndpointSlices accept: not loopback. */
function ownAddress(): string | undefined {
  const addresses = Object.values(networkInterfaces()).flatMap((found) => found ?? [])
  return addresses.find(({ family, internal }) => family === 'IPv4' && !internal)?.address
}

/** A DNS server with addresses that the test can change. */
class Zone {
  readonly server: ScriptedServer
  readonly #records = new Map<string, { addresses: readonly string[]; ttl: number }>()

  private constructor(server: ScriptedServer) {
    this.server = server
  }

  static async open(t: Test, host: string): Promise<Zone> {
    const server = await ScriptedServer.open(t, () => undefined, host)
    const zone = new Zone(server)
    server.script = ({ question }) => {
      const found = zone.#records.get(nameKey(question!.name))
      if (found === undefined) return 3
      return found.addresses.flatMap((text) => {
        const { bytes, family } = scanAddress(text)!
        const type = family === 1 ? RRType.A : RRType.AAAA
        if (type !== question!.type) return []
        const { name } = question!
        return [{ owner: name, type, rrclass: RRClass.IN, ttlSeconds: found.ttl, rdata: bytes }]
      })
    }
    return zone
  }

  set(name: string, ttl: number, ...addresses: string[]): void {
    this.#records.set(nameKey(scanName(`${name}.`)!), { addresses, ttl })
  }

  /** Number of queries for a name. */
  count(name: string, type: number = RRType.A): number {
    const key = nameKey(scanName(`${name}.`)!)
    return this.server.asked.filter(
      ({ query: { question } }) => nameKey(question!.name) === key && question!.type === type,
    ).length
  }
}

class Shop {
  readonly cluster: Cluster
  readonly zones: readonly Zone[]
  readonly #t: Test

  constructor(t: Test, cluster: Cluster, zones: readonly Zone[]) {
    this.#t = t
    this.cluster = cluster
    this.zones = zones
  }

  startOperator(...args: readonly string[]): Promise<RunningOperator> {
    return RunningOperator.start(this.#t, {
      kubeconfig: this.cluster.kubeconfig('admin'),
      args: ['--controllers=fqdnnetworkpolicy', ...args],
    })
  }

  path(name = '', api = DELTA10): string {
    return `/apis/${api}/namespaces/shop/fqdnnetworkpolicies${name === '' ? '' : `/${name}`}`
  }

  // biome-ignore lint/suspicious/noExplicitAny: an object as the API has it
  async create(name: string, spec: object, metadata: object = {}, api = DELTA10): Promise<any> {
    return this.cluster.must('POST', this.path('', api), {
      apiVersion: api,
      kind: 'FQDNNetworkPolicy',
      metadata: { name, ...metadata },
      spec: { podSelector: {}, ...spec },
    })
  }

  // biome-ignore lint/suspicious/noExplicitAny: an object as the API has it
  async status(name: string, api = DELTA10): Promise<any> {
    return (await this.cluster.must('GET', this.path(name, api))).status ?? {}
  }

  /** undefined = there is none. */
  // biome-ignore lint/suspicious/noExplicitAny: an object as the API has it
  async networkPolicy(name: string): Promise<any> {
    const reply = await this.cluster.call('GET', `${POLICIES}/${name}`)
    return reply.status === 200 ? reply.body : undefined
  }

  /** The addresses of each rule. `none` = there is no NetworkPolicy. */
  async cidrs(name: string): Promise<string> {
    const spec = (await this.networkPolicy(name))?.spec
    if (spec === undefined) return 'none'
    type Rule = Readonly<Record<'to' | 'from', { ipBlock: { cidr: string } }[] | undefined>>
    const rule = ({ to, from }: Rule): string =>
      (to ?? from)?.map(({ ipBlock }) => ipBlock.cidr).join(' ') ?? 'all'
    return [...(spec.egress ?? []), ...(spec.ingress ?? [])].map(rule).join(' | ')
  }

  async has(name: string, want: string): Promise<void> {
    let got = ''
    const isSo = async () => (got = await this.cidrs(name)) === want
    await until(isSo, `${name} to allow ${want}`, SEEN_MS).catch((error: Error) => {
      throw new Error(`${error.message}, it allows ${got}`)
    })
  }

  async isIn(name: string, state: string, api = DELTA10): Promise<void> {
    const isSo = async () => (await this.status(name, api)).state === state
    await until(isSo, `${name} to be ${state}`, SEEN_MS)
  }
}

const to = (...fqdns: string[]) => ({ egress: [{ to: [{ fqdns }], ports: HTTPS }] })

t.test('FQDNNetworkPolicies with the real API server', needsCluster(), async (t) => {
  const host = ownAddress()
  if (host === undefined) return void t.comment('skipped: this machine has only loopback addresses')
  const cluster = await Cluster.start(t)
  await cluster.createNamespace('shop')
  for (const group of ['networking.delta10.nl', 'networking.gke.io']) {
    await cluster.must('POST', DEFINITIONS, readCrd(`fqdnnetworkpolicy/${group}`))
  }
  const zones = [await Zone.open(t, host), await Zone.open(t, host)]
  const shop = new Shop(t, cluster, zones)
  const isServed = async () => {
    const replies = [DELTA10, GKE].map((api) => cluster.call('GET', shop.path('', api)))
    return (await Promise.all(replies)).every(({ status }) => status === 200)
  }
  await until(isServed, 'the definitions', SEEN_MS)
  for (const [i, { server }] of zones.entries()) {
    await cluster.must('POST', SLICES, {
      metadata: { name: `dns-${i}`, labels: { 'kubernetes.io/service-name': 'kube-dns' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [host] }],
      ports: [{ name: 'dns', port: server.port, protocol: 'UDP' }],
    })
  }
  let operator = await shop.startOperator()

  await t.test('the NetworkPolicy has the addresses of all servers', async (t) => {
    zones[0]!.set('a.example', 300, '198.51.100.2', '2001:db8::1')
    zones[1]!.set('a.example', 300, '198.51.100.1', '198.51.100.2')
    const { metadata } = await shop.create('both', {
      podSelector: { matchLabels: { role: 'web' } },
      egress: [
        { to: [{ fqdns: ['a.example'] }], ports: HTTPS },
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
    t.strictSame(policy.spec.egress[0].ports, HTTPS)
    t.strictSame([...policy.spec.policyTypes].sort(), ['Egress', 'Ingress'])
    await shop.isIn('both', 'Active')
    const { cache, reason } = await shop.status('both')
    t.equal(reason, undefined)
    t.strictSame(Object.keys(cache), ['A.example.', 'a.example', 'missing.example'])
    const expiry = Date.parse(cache['a.example'].ipExpiration['198.51.100.1/32'])
    t.ok(Math.abs(expiry - Date.now() - 3_600_000) < 5000, 'an hour from now')
    const next = Date.parse(cache['a.example'].nextUdateTime)
    t.ok(Math.abs(next - Date.now() - 300_800) < 5000, 'the TTL from now')
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
    t.ok(performance.now() - startMs < 15_000, 'within seconds, not an hour')
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
    for (const i of zones.keys()) await cluster.must('DELETE', `${SLICES}/dns-${i}`)
    await shop.isIn('both', 'Pending')
    t.match((await shop.status('both')).reason, /kube-dns has no ready endpoints/)
    t.match(await shop.cidrs('both'), /198.51.100.1.32/)
  })

  await t.test('a status from before, and addresses that expire', async () => {
    await operator.stop()
    await shop.create('cached', to('cached.example'))
    const at = (seconds: number) => `${new Date(Date.now() + seconds * 1000).toISOString()}`
    const ipExpiration = {
      '10.0.0.1/32': at(60),
      '2001:db8::9/128': at(60),
      '10.0.0.2/32': at(-60),
      '10.0.0.3/32': at(8),
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
    t.notMatch(operator.output, /panic|unhandled|TypeError/i)
  })
})
