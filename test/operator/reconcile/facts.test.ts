import t from 'tap'
import { thisMoment } from '../../../src/base/moment.ts'
import type { ApiObject } from '../../../src/kube/api.ts'
import { annotated, ClusterServer } from '../../support/cluster-server.ts'
import { dnsRecord } from '../../support/operator-objects.ts'
import type { PeerText } from '../../support/peer-text.ts'
import { EAST, HOUR_MS, OperatorFixture, WEST } from './stage.ts'

const SITES = 'sextant.io/sites'
const HOST = 'k.example.com'
const A = `${HOST}. A`
const OURS = '192.0.2.1'
const THEIRS = '192.0.2.2'

function endpoint(target: string, more: object = {}): ApiObject {
  return { dnsName: HOST, recordType: 'A', recordTTL: 60, targets: [target], ...more }
}

const steered = (id: string, target: string, geo: string): ApiObject =>
  endpoint(target, { setIdentifier: id, providerSpecific: [{ name: 'geo-code', value: geo }] })

/** An operator with the record `app`, and what its nameserver serves. */
class Stage extends OperatorFixture {
  readonly server = new ClusterServer()

  static with(endpoints: readonly ApiObject[], annotations: ApiObject = {}, name = 'app'): Stage {
    const stage = new Stage()
    stage.add(name, endpoints, annotations)
    return stage
  }

  add(name: string, endpoints: readonly ApiObject[], annotations: ApiObject = {}): void {
    this.cluster.put(dnsRecord({ name, spec: { endpoints }, metadata: { annotations } }))
  }

  setDown(name: string, ...down: string[]): void {
    const probes = down.map((address) => ({ address, health: 'down' as const, reason: 'HTTP 503' }))
    this.cluster.health.set(`a/${name}`, { down, up: [], probes })
  }

  /** Endpoints of a peer's record. */
  export(site: string, endpoints: readonly Partial<PeerText>[], address = EAST): void {
    this.peers.say(address, site, endpoints, thisMoment(this.clock))
  }

  /** Reconciles all originals; returns what the server has then. */
  async serve(...names: string[]): Promise<ClusterServer> {
    for (const name of names.length === 0 ? ['app'] : names) await this.reconcile(`a/${name}`)
    this.server.apply(this.cluster.records.values())
    return this.server
  }

  facts(name = 'app'): string {
    return String(this.field(`merged-${name}`, 'metadata', 'annotations', SITES))
  }

  spec(name = 'app'): string {
    const endpoints = this.field(`merged-${name}`, 'spec', 'endpoints') as readonly ApiObject[]
    return endpoints
      .flatMap(({ targets }) => targets)
      .sort()
      .join(' ')
  }
}

function keysOf(server: ClusterServer): string[] {
  return server.records().map(({ key }) => key)
}

t.test('two ordinary records of one host: a dead address is not served', async (t) => {
  const stage = new Stage()
  stage.add('one', [steered('eu', OURS, 'GEO-EU')])
  stage.add('two', [steered('us', THEIRS, 'GEO-NA')])
  stage.setDown('one', OURS)
  const server = await stage.serve('one', 'two')
  t.equal(stage.spec('one'), OURS, 'alone in its object: other programs serve it')
  t.equal(server.targets(A), THEIRS)
  stage.setDown('two', THEIRS)
  await stage.serve('one', 'two')
  t.equal(server.targets(A), `${OURS} ${THEIRS}`, 'all are down')
  stage.setDown('one')
  await stage.serve('one', 'two')
  t.equal(server.targets(A), OURS)
  t.strictSame(server.refusals, [])
})

t.test('each record of each site is served as a record of its own', async (t) => {
  const settings = { sticky: { ipv4Bits: 16, ipv6Bits: 48 } }
  const stage = Stage.with([endpoint(OURS)])
  stage.export('east', [
    { targets: [THEIRS], createdSeconds: 5, recordId: '00000001' },
    { targets: ['192.0.2.3'], createdSeconds: 9, recordId: '00000002', settings },
    { targets: ['192.0.2.4'], health: 'down', createdSeconds: 9, recordId: '00000002', settings },
  ])
  const server = await stage.serve()
  t.strictSame(keysOf(server), ['a/merged-app', 'a/merged-app@east', 'a/merged-app@east~2'])
  const [own, first, second] = server.records()
  t.match(own, { origin: { site: 'here' }, original: 'a/app' })
  t.match(first, { origin: { site: 'east', id: '00000001' }, original: undefined })
  t.match(second, { origin: { site: 'east', id: '00000002' }, original: undefined })
  t.strictSame(server.health.healthOf('a/merged-app@east~2').down, ['192.0.2.4'])
  t.equal(server.targets(A), `${OURS} ${THEIRS} 192.0.2.3`)
  t.strictSame(server.sets.get(A)?.sticky, settings.sticky, 'the only one that sets it')
  t.equal(stage.spec(), `${OURS} ${THEIRS} 192.0.2.3`)
  stage.export('east', [])
  await stage.serve()
  t.strictSame(keysOf(server), ['a/merged-app'])
  t.strictSame([...server.health.recordKeys], [])
})

t.test('settings of the original are in force; the oldest record decides', async (t) => {
  const annotations = { 'sextant.io/sticky': 'true', 'sextant.io/all-down': 'closed' }
  const stage = Stage.with([endpoint(OURS)], annotations)
  const server = await stage.serve()
  t.strictSame(server.sets.get(A)?.sticky, { ipv4Bits: 24, ipv6Bits: 56 })
  const theirs = { sticky: { ipv4Bits: 8, ipv6Bits: 32 } }
  stage.export('east', [{ targets: [THEIRS], createdSeconds: 1, recordId: 'x', settings: theirs }])
  await stage.serve()
  t.strictSame(server.sets.get(A)?.sticky, theirs.sticky, 'theirs is older')
  stage.export('east', [])
  stage.setDown('app', OURS)
  await stage.serve()
  t.equal(server.targets(A), undefined, 'all-down closed')
  t.equal(stage.spec(), OURS)
})

t.test('a drain of the record is in force, and ends by itself', async (t) => {
  const until = new Date(new OperatorFixture().clock.now() + HOUR_MS).toISOString()
  const drain = { 'sextant.io/drain': 'racks move', 'sextant.io/drain-until': until }
  const stage = Stage.with([endpoint(OURS)], drain)
  stage.export('east', [{ targets: [THEIRS] }])
  const server = await stage.serve()
  t.equal(stage.spec(), THEIRS)
  const [own] = server.records()
  t.match(JSON.parse(stage.facts()).parts[0], {
    site: 'here',
    settings: { drain: 'racks move', 'drain-until': until.replace('.000', '') },
  })
  t.equal(own?.key, 'a/merged-app')
  const facts = stage.facts()
  stage.clock.pass(HOUR_MS)
  await stage.serve()
  t.equal(stage.spec(), `${OURS} ${THEIRS}`)
  t.match(stage.facts(), /"settings":\{"drain":"racks move"/, 'the server knows when it ends')
  t.not(stage.facts(), facts)
})

t.test('a drained endpoint of a peer is drained, not down', async (t) => {
  const stage = Stage.with([endpoint(OURS)])
  const drained = { health: 'down' as const, settings: { drain: { reason: 'racks move' } } }
  stage.export('east', [{ targets: [THEIRS], ...drained }, { targets: ['192.0.2.3'] }])
  const server = await stage.serve()
  t.strictSame([...server.health.recordKeys], [])
  t.equal(stage.spec(), `${OURS} 192.0.2.3`)
  const parts = JSON.parse(stage.facts()).parts as { settings?: object }[]
  t.strictSame(
    parts.map(({ settings }) => settings),
    [undefined, undefined, { drain: 'racks move' }],
  )
})

t.test('our probes decide about our addresses, also if a peer has them too', async (t) => {
  const table = [
    { name: 'we find it down', down: [OURS], up: [], health: 'up', want: THEIRS },
    { name: 'we find it up', down: [], up: [OURS], health: 'down', want: `${OURS} ${THEIRS}` },
    { name: 'we do not know', down: [], up: [], health: 'up', want: `${OURS} ${THEIRS}` },
  ] as const
  for (const { name, down, up, health, want } of table) {
    const stage = Stage.with([steered('a', OURS, 'GEO-EU')])
    stage.cluster.health.set('a/app', { down, up, probes: [] })
    stage.export('east', [{ targets: [OURS], setIdentifier: 'b', health }])
    stage.export('west', [{ targets: [THEIRS], setIdentifier: 'c' }], WEST)
    t.equal((await stage.serve()).targets(A), want, name)
  }
})

t.test('facts change with data, not with time', async (t) => {
  const stage = Stage.with([endpoint(OURS), endpoint(`192.0.2.9`)])
  stage.setDown('app', '192.0.2.9')
  stage.export('east', [{ targets: [THEIRS] }])
  await stage.serve()
  const facts = stage.facts()
  t.match(facts, /"down":\{"192\.0\.2\.9":"HTTP 503"\}/)
  for (let hour = 0; hour < 3; hour++) {
    stage.clock.pass(HOUR_MS)
    stage.start()
    stage.export('east', [{ targets: [THEIRS] }])
    t.strictSame(await stage.reconcile(), [])
  }
  t.equal(stage.facts(), facts)
})

t.test('an edit of the annotation is undone', async (t) => {
  const stage = Stage.with([endpoint(OURS)])
  await stage.serve()
  const merged = stage.cluster.stored('a/merged-app')!
  stage.cluster.put(annotated(merged, { [SITES]: '{}', other: 'kept' }))
  t.match(await stage.reconcile(), ['apply merged-app'])
  t.match(stage.field('merged-app', 'metadata', 'annotations'), { other: 'kept', [SITES]: /"v":1/ })
})

t.test('what has no room is left out, and Ready says so', async (t) => {
  const table = [
    { count: 100, note: '' },
    { count: 300, note: '; the annotation SITES has no room for all endpoints that are down' },
    {
      count: 300,
      settings: 100,
      note: '; the annotation SITES has no room for the settings of east',
    },
  ]
  for (const { count, note, settings = 0 } of table) {
    const addresses = Array.from({ length: count }, (_, i) => `192.0.${3 + (i >> 8)}.${i & 255}`)
    const id = 'x'.repeat(1000)
    const dead = addresses.map((address) => endpoint(address, { setIdentifier: id + address }))
    const own = [endpoint(OURS, { setIdentifier: 'ours' }), ...dead]
    const stage = Stage.with(own, { 'sextant.io/sticky': '16 48' })
    stage.setDown('app', ...addresses)
    const lists = Array.from({ length: settings }, (_, i) => {
      const entries = Array.from({ length: 64 }, (_, at) => 'x'.repeat(50) + at)
      const failover = [{ code: 'GEO-EU', entries }]
      return { targets: [`198.51.100.${i}`], recordId: `${i}`, settings: { failover } }
    })
    stage.export('east', lists)
    const server = await stage.serve()
    const message = String(stage.ready()[2])
    const want = `Provider ensured the dns record${note.replace('SITES', SITES)}`
    t.equal(message.slice(0, want.length), want)
    if (note === '') t.equal(message, want)
    t.ok(server.targets(A)?.startsWith(OURS), 'what is up is served')
    const sticky = { ipv4Bits: 16, ipv6Bits: 48 }
    t.strictSame(server.sets.get(A)?.sticky, sticky, 'our own setting is in force')
    t.strictSame(server.refusals, [])
    t.ok(stage.facts().length <= 262_144)
    t.strictSame(await stage.reconcile(), [])
  }
})
