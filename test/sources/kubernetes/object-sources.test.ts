import t, { type Test } from 'tap'
import { Random } from '../../../src/base/random.ts'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import type { ApiObject, ApiResource } from '../../../src/kube/api.ts'
import { unpackRecord } from '../../../src/records/pack.ts'
import { printTarget } from '../../../src/records/print-endpoint.ts'
import { KubernetesSource } from '../../../src/sources/kubernetes/kubernetes-source.ts'
import { turns } from '../../support/api-double.ts'
import { MemoryApi } from '../../support/memory-api.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import { gateway, route } from '../objects/gateway/objects.ts'
import { nodeOf, serviceOf, sliceOf } from '../objects/service-objects.ts'

/** The longest wait between two attempts. */
const WAIT_MS = 15_001

class Stage {
  readonly api = new MemoryApi()
  readonly timers = new FakeTimers()
  readonly clock = new FakeClock()
  readonly lines: string[] = []
  readonly source: KubernetesSource
  isSynced = false

  constructor(t: Test, sources: readonly string[], refuse?: MemoryApi['refuse']) {
    if (refuse !== undefined) this.api.refuse = refuse
    const log = createLogger(
      '',
      (line) => this.lines.push(line),
      () => false,
    )
    const { api, clock, timers } = this
    const random = new Random(1)
    this.source = new KubernetesSource({ api, namespaces: [], sources, log, clock, timers, random })
    void this.source.synced().then(() => {
      this.isSynced = true
    })
    t.teardown(() => this.source.close())
  }

  async start(): Promise<this> {
    void this.source.start()
    await this.advance(1)
    return this
  }

  async put(...objects: readonly ApiObject[]): Promise<void> {
    for (const object of objects) this.api.put(resourceOf(object), object)
    await this.advance(10)
  }

  async advance(milliseconds: number): Promise<void> {
    for (let i = 0; i < 5; i++) await turns()
    this.clock.monotonicMs += milliseconds
    await this.timers.advance(milliseconds)
    for (let i = 0; i < 5; i++) await turns()
  }

  /** The records that are served, with their addresses. */
  get served(): string[] {
    const texts = [...this.source.records()].map(({ key, packed }) => {
      const { endpoints } = unpackRecord(packed)
      const targets = endpoints.flatMap(({ type, rdata }) =>
        rdata.map((one) => printTarget(type, one)),
      )
      return `${key} ${targets.join(' ')}`
    })
    return texts.sort()
  }

  get problems(): string[] {
    const [refused] = this.source.problemGroups('x')
    return [...refused!.problems].map(({ object, reason }) => `[${object}] ${reason}`)
  }
}

const GATEWAYS = { group: 'gateway.networking.k8s.io', version: 'v1' }
const PLURALS = new Map([
  ['Gateway', 'gateways'],
  ['HTTPRoute', 'httproutes'],
])
const RECORDS = { group: 'kuadrant.io', version: 'v1alpha1', plural: 'dnsrecords' }

const CORE = { group: '', version: 'v1' }
const OTHERS: ReadonlyMap<string, ApiResource> = new Map([
  ['Service', { ...CORE, plural: 'services' }],
  ['Node', { ...CORE, plural: 'nodes' }],
  ['EndpointSlice', { group: 'discovery.k8s.io', version: 'v1', plural: 'endpointslices' }],
])

function resourceOf({ kind }: ApiObject): ApiResource {
  const other = OTHERS.get(String(kind))
  if (other !== undefined) return other
  const plural = PLURALS.get(String(kind))
  return plural === undefined ? RECORDS : { ...GATEWAYS, plural }
}

function record(name: string, address: string): ApiObject {
  const dnsName = `${name}.example.com`
  const labels = { 'kuadrant.io/coredns-zone-name': 'example.com' }
  return {
    kind: 'DNSRecord',
    metadata: { namespace: 'infra', name, labels },
    spec: { rootHost: dnsName, endpoints: [{ dnsName, recordType: 'A', targets: [address] }] },
  }
}

const refusing =
  (status: number, plurals: RegExp): MemoryApi['refuse'] =>
  ({ path }) =>
    plurals.test(path) ? status : undefined

const SHOP = 'infra/Gateway:shop:shop.example.com 192.0.2.1'

t.test('the kinds of `sources` are served, and only these are watched', async (t) => {
  const objects = [
    record('r', '192.0.2.9'),
    gateway('infra/shop'),
    route('a/r', ['shop.example.com']),
  ]
  const cases = [
    { sources: ['dnsrecord'], want: ['infra/r 192.0.2.9'], watches: 2 },
    { sources: ['gateway'], want: [SHOP], watches: 5 },
    { sources: ['dnsrecord', 'gateway'], want: [SHOP, 'infra/r 192.0.2.9'], watches: 7 },
  ]
  for (const { sources, want, watches } of cases) {
    const stage = new Stage(t, sources)
    for (const one of objects) stage.api.put(resourceOf(one), one)
    await stage.start()
    t.equal(stage.isSynced, true)
    t.strictSame(stage.served, want, sources.join())
    t.equal(stage.source.watches.length, watches)
    t.match(stage.lines.at(-1), /read \d records? from Kubernetes, in all namespaces/)
  }
})

t.test(
  'a kind that the API lacks or refuses holds up no other kind, and is followed later',
  async (t) => {
    const cases = [
      {
        status: 404,
        lacks: /listenersets|tlsroutes/,
        isSynced: true,
        served: [SHOP, 'infra/r 192.0.2.9'],
      },
      { status: 404, lacks: /gateway/, isSynced: true, served: ['infra/r 192.0.2.9'] },
      { status: 403, lacks: /gateway/, isSynced: true, served: ['infra/r 192.0.2.9'] },
      { status: 404, lacks: /kuadrant/, isSynced: true, served: [SHOP] },
      { status: 404, lacks: /./, isSynced: false, served: [] },
      { status: 503, lacks: /tlsroutes/, isSynced: false, served: [] },
    ]
    for (const { status, lacks, isSynced, served } of cases) {
      const name = `${status} ${lacks}`
      const stage = new Stage(t, ['dnsrecord', 'gateway'], refusing(status, lacks))
      await stage.put(record('r', '192.0.2.9'), gateway('infra/shop'))
      await stage.put(route('a/r', ['shop.example.com']))
      await stage.start()
      t.equal(stage.isSynced, isSynced, name)
      if (isSynced) t.strictSame(stage.served, served, name)
      const page = isSynced ? stage.source.note() : stage.source.unreadyReason()
      t.match(page, new RegExp(`${status} refused by the test`), name)
      t.equal(stage.source.ageMs, 0, name)
      stage.api.refuse = () => undefined
      await stage.advance(WAIT_MS)
      await stage.advance(10)
      t.strictSame(stage.served, [SHOP, 'infra/r 192.0.2.9'], `${name}, later`)
      t.equal(stage.source.note(), '', name)
    }
  },
)

t.test(
  'problems name the object with the fault, and its last valid records are served',
  async (t) => {
    const stage = await new Stage(t, ['gateway']).start()
    const bad = { annotations: { 'sextant.io/drain-until': 'soon' } }
    await stage.put(
      gateway('infra/shop'),
      route('a/r', ['shop.example.com']),
      route('a/x', ['shop']),
    )
    t.strictSame(stage.served, [SHOP])
    const refused =
      /^\[Gateway infra\/shop\] Gateway infra\/shop: host shop is refused, not served: spec\.rootHost: /
    t.match(stage.problems, [refused])
    t.equal(stage.source.refusedCount, 1)
    await stage.put(route('a/x', []), route('a/r', ['shop.example.com'], bad))
    t.strictSame(stage.served, [SHOP])
    t.match(stage.problems, [
      /^\[HTTPRoute a\/r\] HTTPRoute a\/r: metadata\.annotations\.sextant\.io\/drain-until: .*shop\.example\.com: its last valid record is served/,
    ])
    await stage.put(gateway('infra/shop', { addresses: [] }))
    t.strictSame(stage.served, [SHOP])
    t.strictSame(stage.problems, [
      '[Gateway infra/shop] Gateway infra/shop: status.addresses: the Gateway has no address yet; its last valid records are served',
    ])
    const lines = stage.lines.length
    await stage.put(gateway('infra/shop', { addresses: [] }))
    t.equal(stage.lines.length, lines, 'what is known is not logged again')
    await stage.put(
      gateway('infra/shop', { addresses: ['192.0.2.2'] }),
      route('a/r', ['shop.example.com']),
    )
    t.strictSame(stage.served, ['infra/Gateway:shop:shop.example.com 192.0.2.2'])
    t.strictSame(stage.problems, [])
    stage.api.drop({ ...GATEWAYS, plural: 'gateways' }, 'infra/shop')
    await stage.advance(10)
    t.strictSame(stage.served, [])
  },
)

t.test('what a list lacks is removed, in its namespace', async (t) => {
  const stage = await new Stage(t, ['gateway']).start()
  await stage.put(
    gateway('infra/shop'),
    route('a/r', ['shop.example.com']),
    route('a/s', ['s.example.com']),
  )
  t.equal(stage.served.length, 2)
  stage.api.refuse = refusing(410, /httproutes/)
  stage.api.cut()
  await stage.advance(WAIT_MS)
  stage.api.drop({ ...GATEWAYS, plural: 'httproutes' }, 'a/s')
  stage.api.refuse = () => undefined
  await stage.advance(WAIT_MS)
  await stage.advance(WAIT_MS)
  t.strictSame(stage.served, [SHOP])
})

t.test('resources that only some objects need are watched once one needs them', async (t) => {
  const stage = new Stage(t, ['service'])
  const watched = () => stage.source.watches.map(({ resource }) => resource.plural)
  const service = (name: string, spec: ApiObject, address = '') => {
    const annotations = { 'external-dns.kubernetes.io/hostname': `${name}.example.com` }
    const ingress = address === '' ? [] : [{ ip: address }]
    return serviceOf(name, annotations, { spec, status: { loadBalancer: { ingress } } }).object
  }
  await stage.put(service('lb', { type: 'LoadBalancer' }, '192.0.2.1'))
  await stage.start()
  t.strictSame(stage.served, ['shop/Service:lb:lb.example.com 192.0.2.1'])
  t.strictSame(watched(), ['services'])
  await stage.put(
    nodeOf('n1', { ExternalIP: ['192.0.2.2'] }).object,
    sliceOf('s', 'pods', [{ pod: 'p1', addresses: ['10.0.0.1'] }]).object,
  )
  await stage.put(service('ports', { type: 'NodePort' }))
  t.strictSame(watched(), ['services', 'nodes'])
  t.match(stage.served, [/lb.example.com/, /ports.example.com 192.0.2.2/])
  await stage.put(service('pods', { clusterIP: 'None' }))
  t.strictSame(watched(), ['services', 'nodes', 'endpointslices', 'pods'])
  t.match(stage.served, [/lb.example.com/, /pods.example.com 10.0.0.1/, /ports.example.com/])
  t.strictSame(stage.problems, [], 'an object that waits for others has no problem')
})

t.test('at the start, objects that are needed are read before the source is synced', async (t) => {
  const stage = new Stage(t, ['service'])
  const annotations = { 'external-dns.kubernetes.io/hostname': 'a.example.com' }
  await stage.put(
    serviceOf('web', annotations, { spec: { type: 'NodePort' } }).object,
    nodeOf('n1', { InternalIP: ['10.0.0.1'] }).object,
  )
  await stage.start()
  t.ok(stage.isSynced)
  t.strictSame(stage.served, ['shop/Service:web:a.example.com 10.0.0.1'])
  t.strictSame(stage.problems, [])
})
