import t from 'tap'
import { thisMoment } from '../../../src/base/moment.ts'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import { MetricsRegistry } from '../../../src/base/telemetry/metrics.ts'
import type { ApiObject } from '../../../src/kube/api.ts'
import { RecordNames } from '../../../src/operator/cluster/record-names.ts'
import { OperatorMetrics } from '../../../src/operator/metrics.ts'
import type { Reconciler } from '../../../src/operator/reconcile/reconciler.ts'
import { Reporter } from '../../../src/operator/reconcile/reporter.ts'
import { ToyCluster, ToyPeers } from '../../support/operator-cluster.ts'
import { at, dnsRecord, secret } from '../../support/operator-objects.ts'
import type { PeerText } from '../../support/peer-text.ts'
import { FakeClock } from '../../support/setup.ts'
import { toyReconciler } from '../../support/toy-reconciler.ts'

const PEER = '192.0.2.53:53'
const ZONE = 'k.example.com'
const HOST = `app.${ZONE}`

const own = (more: ApiObject = {}): ApiObject => ({
  dnsName: HOST,
  recordType: 'A',
  recordTTL: 60,
  targets: ['192.0.2.1'],
  ...more,
})

/** An operator with one record of `app.k.example.com` and one hostile peer. */
class OperatorFixture {
  readonly cluster = new ToyCluster()
  readonly peers = new ToyPeers()
  readonly clock = new FakeClock()
  readonly lines: string[] = []
  readonly notes: string[] = []
  readonly registry = new MetricsRegistry()
  readonly #reconciler: Reconciler

  constructor(endpoints: readonly ApiObject[], allow = '', peers: readonly string[] = [PEER]) {
    const data = { ZONES: ZONE, NAMESERVERS: peers.join(','), PEERS_ALLOW: allow }
    this.cluster.put(secret('a', 'coredns', data))
    this.cluster.put(dnsRecord({ spec: { rootHost: HOST, endpoints } }))
    const log = createLogger(
      '',
      (line) => this.lines.push(line),
      () => false,
    )
    const events = {
      record: (_: unknown, { reason, note }: { reason: string; note: string }) =>
        this.notes.push(`${reason}: ${note}`),
    }
    this.#reconciler = toyReconciler(this.cluster, this.clock, {
      peers: this.peers,
      listener: new Reporter(events, new OperatorMetrics(this.registry), log),
      site: 'ours',
    })
  }

  say(endpoints: readonly Partial<PeerText>[]): void {
    const whole = endpoints.map((one) => ({ rootHost: HOST, dnsName: HOST, ...one, site: '0evil' }))
    this.peers.say(PEER, '0evil', whole, thisMoment(this.clock))
  }

  /** `name TYPE ttl targets [set] properties` of each endpoint that is served. */
  async served(key = 'a/app'): Promise<string[]> {
    await this.#reconciler.reconcile(key)
    this.cluster.takeWrites()
    await this.#reconciler.reconcile(key)
    const again = this.cluster.takeWrites()
    if (again.length > 0) throw new Error(`a second look wrote ${again}`)
    const merged = this.cluster.stored(key.replace('/', '/merged-'))
    const endpoints = at(merged, 'spec', 'endpoints') as readonly ApiObject[]
    const lines = endpoints.map((e) => {
      const properties = (e.providerSpecific ?? []) as readonly ApiObject[]
      const words = [e.dnsName, e.recordType, e.recordTTL, (e.targets as string[]).join()]
      if (e.setIdentifier !== undefined) words.push(`[${e.setIdentifier}]`)
      return [...words, ...properties.map(({ name, value }) => `${name}=${value}`)].join(' ')
    })
    return lines.sort()
  }

  condition(type: string, name = 'app'): ApiObject | undefined {
    const conditions = at(this.cluster.stored(`a/${name}`), 'status', 'conditions')
    return (conditions as readonly ApiObject[]).find((one) => one.type === type)
  }
}

const weight = (value: string): ApiObject => ({ providerSpecific: [{ name: 'weight', value }] })
const OURS = `${HOST} A 60 192.0.2.1`
const BOTH = `${HOST} A 60 192.0.2.1,192.0.2.2`

const ATTACKS: readonly {
  readonly name: string
  readonly own?: ApiObject
  readonly peer: Partial<PeerText>
  readonly want: readonly string[]
  /** '' = it may do this. */
  readonly reason: 'EndpointConflict' | 'EndpointRefused' | ''
}[] = [
  {
    name: 'our address is down',
    peer: { targets: ['192.0.2.1'], health: 'down' },
    want: [OURS],
    reason: '',
  },
  {
    name: 'a CNAME over our address',
    peer: { recordType: 'CNAME', targets: ['evil.example'] },
    want: [OURS],
    reason: 'EndpointConflict',
  },
  {
    name: 'TTL 0',
    peer: { ttlSeconds: 0 },
    want: [BOTH.replace('60', '5')],
    reason: 'EndpointConflict',
  },
  {
    name: 'a weight of a million',
    peer: { setIdentifier: '!', weight: 1_000_000 },
    want: [OURS, `${HOST} A 60 192.0.2.2 [!] weight=1000000`],
    reason: '',
  },
  {
    name: 'our set identifier',
    own: own({ setIdentifier: 'x', ...weight('10') }),
    peer: { setIdentifier: 'x', weight: 10 },
    want: [`${OURS} [x] weight=10`, `${HOST} A 60 192.0.2.2 [x-0evil] weight=10`],
    reason: '',
  },
  {
    name: 'a geo code for all',
    peer: { setIdentifier: '!', geoCodes: ['GEO-EU'], isDefault: true },
    want: [OURS, `${HOST} A 60 192.0.2.2 [!] geo-code=GEO-EU default=true`],
    reason: '',
  },
  {
    name: 'NS at our host',
    peer: { recordType: 'NS', targets: ['ns.evil.example'] },
    want: [OURS],
    reason: 'EndpointRefused',
  },
  {
    name: 'a wildcard below our host',
    peer: { dnsName: `*.${HOST}` },
    want: [OURS],
    reason: 'EndpointRefused',
  },
  {
    name: 'a certificate for our host',
    peer: { dnsName: `_acme-challenge.${HOST}`, recordType: 'TXT', targets: ['token'] },
    want: [OURS],
    reason: 'EndpointRefused',
  },
  {
    name: 'mail for our host',
    peer: { recordType: 'MX', targets: ['10 mx.evil.example'] },
    want: [OURS],
    reason: 'EndpointRefused',
  },
]

for (const { name, own: mine = own(), peer, want, reason } of ATTACKS) {
  t.test(`${name}: our endpoints are unchanged, and the record reports refusals`, async (t) => {
    const fixture = new OperatorFixture([mine])
    t.strictSame((await fixture.served()).length, 1)
    t.equal(fixture.condition('PeersAccepted'), undefined, 'nothing to say')
    fixture.say([peer])
    t.strictSame(await fixture.served(), want)
    if (reason === '') return t.equal(fixture.condition('PeersAccepted'), undefined)
    t.match(fixture.condition('PeersAccepted'), { status: 'False', reason })
    t.match(fixture.condition('Ready'), { status: 'True' })
    t.ok(fixture.notes.some((note) => note.startsWith(`${reason}: `)))
    t.match(
      fixture.lines.join('\n'),
      /a\/app: (conflict with another site|peer 192\.0\.2\.53:53: refused)/,
    )
    const kind = reason === 'EndpointConflict' ? 'endpoint_conflicts' : 'endpoints_refused'
    const series = `sextant_operator_${kind}{dns_record_name="app",dns_record_namespace="a"}`
    t.match(await fixture.registry.print(), `${series} `)
    fixture.say([])
    t.strictSame((await fixture.served()).length, 1)
    t.match(fixture.condition('PeersAccepted'), { status: 'True', reason: 'AllAccepted' })
    t.notOk((await fixture.registry.print()).includes(series))
  })
}

t.test('the Secret allows what no peer may', async (t) => {
  const mail = { recordType: 'MX', targets: ['10 mx.example.net'] }
  const fixture = new OperatorFixture([own()], `name ${HOST} MX`)
  fixture.say([mail])
  t.strictSame(await fixture.served(), [OURS, `${HOST} MX 60 10 mx.example.net.`])
  t.equal(fixture.condition('PeersAccepted'), undefined)
  const bad = new OperatorFixture([own()], 'all')
  await t.rejects(bad.served())
  t.match(bad.condition('Ready'), { status: 'False', message: /PEERS_ALLOW: allow takes name or/ })
})

t.test("names of one record are no peer's by way of another", async (t) => {
  const fixture = new OperatorFixture([own()])
  const endpoints = [{ dnsName: ZONE, recordType: 'A', recordTTL: 60, targets: ['192.0.2.8'] }]
  fixture.cluster.put(dnsRecord({ name: 'apex', spec: { rootHost: ZONE, endpoints } }))
  const evil = { rootHost: ZONE, recordType: 'CNAME', targets: ['evil.example'] }
  fixture.peers.say(
    PEER,
    '0evil',
    [
      { ...evil, dnsName: HOST },
      { ...evil, dnsName: `ns1.${ZONE}` },
      { ...evil, dnsName: `*.${ZONE}` },
    ],
    thisMoment(fixture.clock),
  )
  t.strictSame(await fixture.served('a/apex'), [`${ZONE} A 60 192.0.2.8`])
  const { message } = fixture.condition('PeersAccepted', 'apex') as { message: string }
  t.match(message, /"app\.k\.example\.com" CNAME: it belongs to our host app\.k\.example\.com/)
  t.match(message, /"ns1\.k\.example\.com" CNAME: it is not below one of our names/)
  t.match(message, /"\*\.k\.example\.com" CNAME: it is not below one of our names/)
})

t.test('two records of one host take what peers report each for its own names', async (t) => {
  const fixture = new OperatorFixture([own()])
  const second = own({ dnsName: `two.${HOST}`, targets: ['192.0.2.9'] })
  fixture.cluster.put(dnsRecord({ name: 'second', spec: { rootHost: HOST, endpoints: [second] } }))
  const alias = { recordType: 'CNAME', targets: ['evil.example'] }
  fixture.say([alias, { dnsName: `two.${HOST}` }, { ...alias, dnsName: `two.${HOST}` }])
  t.strictSame(await fixture.served(), [OURS])
  t.strictSame(await fixture.served('a/second'), [`two.${HOST} A 60 192.0.2.2,192.0.2.9`])
  t.match(fixture.condition('PeersAccepted', 'second'), { reason: 'EndpointConflict' })
})

t.test('a new record queues the records of its host and above it', async (t) => {
  const names = new RecordNames()
  let listener: { onAdd?: (key: string, object: ApiObject) => void } = {}
  const news: string[] = []
  const subscribe = (one: object): (() => void) => {
    listener = one
    return () => {}
  }
  names.watch({ subscribe }, (key) => news.push(key))
  const add = (name: string, rootHost: string) =>
    listener.onAdd!(`a/${name}`, dnsRecord({ name, spec: { rootHost, endpoints: [] } }))
  add('apex', ZONE)
  add('app', HOST)
  t.strictSame(news, ['a/apex'])
  add('deep', `*.x.${HOST}`)
  t.strictSame(news, ['a/apex', 'a/app', 'a/apex'])
  // Of two records of a host, the one that has a name decides what peers may add to it.
  add('second', HOST)
  t.strictSame(news.slice(3), ['a/app', 'a/apex'])
})

t.test('a silent peer degrades the record until it answers again', async (t) => {
  const fixture = new OperatorFixture([own()])
  fixture.say([{ targets: ['192.0.2.2'] }])
  t.strictSame(await fixture.served(), [BOTH])
  t.equal(fixture.condition('PeersDegraded'), undefined, 'nothing to report')
  fixture.peers.fallSilent(PEER)
  t.strictSame(await fixture.served(), [BOTH])
  const message =
    /less than a majority of the sites; 1 of 1 nameservers is silent: 192\.0\.2\.53:53$/
  t.match(fixture.condition('PeersDegraded'), { status: 'True', reason: 'SiteIsolated', message })
  fixture.say([{ targets: ['192.0.2.2'] }])
  await fixture.served()
  t.match(fixture.condition('PeersDegraded'), { status: 'False', reason: 'AllHeard' })
})

t.test('a minority of silent sites does not isolate this site', async (t) => {
  const others = ['192.0.2.54:53', '192.0.2.55:53']
  const fixture = new OperatorFixture([own()], '', [PEER, ...others])
  fixture.say([])
  for (const [i, address] of others.entries()) {
    fixture.peers.say(address, `site${i}`, [], thisMoment(fixture.clock))
  }
  fixture.peers.fallSilent(others[0]!)
  await fixture.served()
  const reason = 'PeersSilent'
  t.match(fixture.condition('PeersDegraded'), { status: 'True', reason, message: /^1 of 3 / })
  fixture.peers.fallSilent(others[1]!)
  await fixture.served()
  t.match(fixture.condition('PeersDegraded'), { status: 'True', reason: 'SiteIsolated' })
})

t.test('sites that disagree about the health of an address', async (t) => {
  const fixture = new OperatorFixture([own()], '', [PEER, '192.0.2.54:53'])
  const about = { rootHost: HOST, dnsName: HOST, targets: ['192.0.2.2'] }
  fixture.say([{ ...about, health: 'up' }])
  fixture.peers.say('192.0.2.54:53', 'b', [{ ...about, health: 'down' }], thisMoment(fixture.clock))
  await fixture.served()
  const message = '192.0.2.2: up at 0evil, down at b'
  const wanted = { status: 'True', reason: 'HealthDisputed', message }
  t.match(fixture.condition('PeersDegraded'), wanted)
  t.ok(fixture.notes.includes(`HealthDisputed: ${message}`))
  t.match(fixture.lines.join(), 'a/app: sites disagree about health: 192.0.2.2: up at 0evil')
  const series = 'sextant_operator_health_disputes{dns_record_name="app",dns_record_namespace="a"}'
  t.ok((await fixture.registry.print()).includes(`${series} 1`))
  fixture.say([{ ...about, health: 'down' }])
  await fixture.served()
  t.match(fixture.condition('PeersDegraded'), { status: 'False' })
  t.notOk((await fixture.registry.print()).includes(series))
})

t.test('a site whose probes contradict the site of an address', async (t) => {
  const fixture = new OperatorFixture([own()])
  const nowSeconds = Math.floor(fixture.clock.nowMs / 1000)
  const about = { site: '0evil', health: 'down', sinceSeconds: nowSeconds } as const
  fixture.cluster.health.set('a/app', { down: [], up: ['192.0.2.1'], probes: [] })
  fixture.say([{ targets: ['192.0.2.2'], health: 'up' }])
  fixture.peers.observe(PEER, [
    { ...about, address: '192.0.2.1' },
    { ...about, address: '198.51.100.9' },
    { ...about, address: '192.0.2.2', site: 'ours' },
  ])
  t.strictSame(await fixture.served(), [BOTH], 'our probes decide about our addresses')
  t.equal(fixture.condition('PeersDegraded'), undefined, 'not before the hold-down')
  fixture.clock.pass(61_000)
  t.strictSame(await fixture.served(), [BOTH])
  const message = '192.0.2.1: up at this site, down at 0evil'
  t.match(fixture.condition('PeersDegraded'), { reason: 'HealthDisputed', message })
  fixture.peers.fallSilent(PEER)
  await fixture.served()
  t.match(fixture.condition('PeersDegraded'), { reason: 'SiteIsolated' })
})

t.test('no message has the control and format characters of a set identifier', async (t) => {
  const id = 'x\u202ey\u2066z\u200b'
  const odd = /[\p{Cc}\p{Cf}]/u
  const fixture = new OperatorFixture([own()])
  const ours = { setIdentifier: id, ...weight('1') }
  const two = dnsRecord({ spec: { rootHost: HOST, endpoints: [{ ...own(), ...ours }] } })
  for (const [name, target] of [
    ['one', '192.0.2.1'],
    ['two', '192.0.2.2'],
  ] as const) {
    const endpoints = [{ ...own(), ...ours, targets: [target] }]
    const metadata = { ...(two.metadata as ApiObject), name, uid: name }
    fixture.cluster.put({ ...two, metadata, spec: { ...(two.spec as ApiObject), endpoints } })
  }
  fixture.say([
    { setIdentifier: id, targets: ['198.51.100.1'] },
    { setIdentifier: id, targets: ['198.51.100.2'] },
  ])
  for (const key of ['a/app', 'a/one', 'a/two', 'a/two']) await fixture.served(key)
  const conditions = ['app', 'one', 'two'].flatMap((name) => {
    return at(fixture.cluster.stored(`a/${name}`), 'status', 'conditions') as ApiObject[]
  })
  const messages = conditions.map(({ message }) => String(message))
  const escaped = 'x\\u202ey\\u2066z\\u200b'
  for (const text of [...messages, ...fixture.lines]) t.notMatch(text, odd)
  t.ok(messages.some((text) => text.includes(escaped)))
  t.ok(fixture.lines.some((text) => text.includes(escaped)))
  const failed = fixture.notes.filter((text) => text.startsWith('ProviderError'))
  t.equal(failed.length, 1, 'the same message is no news')
})
