import t, { type Test } from 'tap'
import { RRType } from '../../src/dns/iana/index.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { HMAC_SHA256 } from '../../src/dns/tsig/algorithm.ts'
import { createTsigKey } from '../../src/dns/tsig/key.ts'
import { PeerFollower } from '../../src/peering/peer.ts'
import type { PeerFollowerOptions } from '../../src/peering/peer-options.ts'
import { V1_LACKS } from '../../src/peering/read-v1.ts'
import { ExportedZone, peerRecord, record } from '../support/exported-zone.ts'
import { endpoint, peerTextOf, targetsOf } from '../support/peer-text.ts'
import { recordLog } from '../support/recorded-log.ts'
import { answerOf, ScriptedServer } from '../support/scripted-server.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'
import { until } from '../support/until.ts'

const TRANSFER_RETRY_MS = 3 * 60_000

const HOST = 'app.k.example.com'

function lastSeen(clock: FakeClock) {
  return { lastSeenMs: clock.monotonicMs, lastSeenTimeMs: clock.nowMs }
}

async function setUp(t: Test, zone: ExportedZone, more: Partial<PeerFollowerOptions> = {}) {
  const server = await ScriptedServer.open(t, zone.script)
  const clock = new FakeClock()
  const timers = new FakeTimers()
  const { lines, log } = recordLog()
  const peer = { host: '127.0.0.1', port: server.port }
  const follower = new PeerFollower({ peer, clock, timers, log, random: () => 0, ...more })
  t.teardown(() => follower.close())
  const changed: string[] = []
  follower.subscribe((hosts) => changed.push(...hosts))
  /** Moves both clocks and waits until what was begun by that is over. */
  const pass = async (seconds: number): Promise<void> => {
    clock.pass(seconds * 1000)
    await timers.advance(seconds * 1000)
    await follower.settled()
  }
  const targets = (host = HOST): string[] => {
    return follower.siteStatesOf(host).flatMap((s) => targetsOf(s.endpoints))
  }
  const types = (): string[] => {
    const names = new Map<number, string>(
      Object.entries(RRType).map(([name, type]) => [type, name]),
    )
    return server.asked.map(({ query }) => names.get(query.question!.type)!)
  }
  follower.start()
  await pass(0)
  return { server, clock, follower, lines, changed, pass, targets, types }
}

t.test('a v2 peer is transferred, then only its SOA is polled', async (t) => {
  const zone = new ExportedZone(1, [peerRecord(endpoint()), record('x.kdrnt.', 'A', '192.0.2.9')])
  const { follower, pass, targets, types, changed, clock, lines } = await setUp(t, zone)
  t.strictSame(targets(), ['192.0.2.1'])
  t.strictSame(changed, [HOST])
  t.match(follower.status, { site: 'east', generation: 'v2', serial: 1, error: '', endpoints: 1 })
  t.match(follower.status, lastSeen(clock))
  await pass(1)
  await pass(1)
  t.strictSame(types(), ['SOA', 'AXFR', 'SOA', 'SOA'])
  t.match(follower.status, lastSeen(clock))
  t.strictSame(changed, [HOST])
  t.match(
    lines.join('\n'),
    /peer 127\.0\.0\.1:\d+ is followed by zone transfer: 1 endpoints, serial 1/,
  )
})

t.test('the clock of a peer is read from its cookies', async (t) => {
  const zone = new ExportedZone(1, [peerRecord(endpoint())])
  const { server, follower, clock, pass, changed } = await setUp(t, zone)
  t.equal(follower.clockAheadMs, undefined, 'it sends no cookies')
  const answerAt = (aheadSeconds: number): void => {
    server.answer = answerOf(zone.script, () => clock.nowMs / 1000 + aheadSeconds)
  }
  for (const [aheadSeconds, want, isNews] of [
    [0, 0, false],
    [2, 0, false],
    [-3600, -3_600_000, true],
    [-3601, -3_600_000, false],
    [60, 60_000, true],
    [0, 0, true],
  ] as const) {
    changed.length = 0
    answerAt(aheadSeconds)
    await pass(30)
    t.equal(follower.clockAheadMs, want, `${aheadSeconds} s`)
    t.strictSame(changed, isNews ? [HOST] : [], 'its hosts are merged again')
  }
  server.script = zone.script
  await pass(1)
  t.equal(follower.clockAheadMs, 0, 'a reply without a cookie changes nothing')
})

t.test('a change arrives as IXFR, and notifies only for its hosts', async (t) => {
  const other = peerRecord(endpoint({ rootHost: 'b.k.example.com', dnsName: 'b.k.example.com' }))
  const zone = new ExportedZone(1, [peerRecord(endpoint()), other])
  const { pass, targets, types, changed } = await setUp(t, zone)
  changed.length = 0
  zone.put(2, [peerRecord(endpoint({ targets: ['192.0.2.2'] })), other])
  await pass(1)
  t.strictSame(targets(), ['192.0.2.2'])
  t.strictSame(changed, [HOST])
  t.strictSame(types().slice(-2), ['SOA', 'IXFR'])
  zone.put(3, [other])
  await pass(1)
  t.strictSame(targets(), [])
})

t.test('a peer that does not know IXFR is asked for the whole zone at once', async (t) => {
  const zone = new ExportedZone(1, [peerRecord(endpoint())])
  const { follower, pass, targets, types } = await setUp(t, zone)
  zone.knowsIxfr = false
  zone.put(2, [peerRecord(endpoint({ targets: ['192.0.2.2'] }))])
  await pass(1)
  t.strictSame(types().slice(-3), ['SOA', 'IXFR', 'AXFR'])
  t.strictSame(targets(), ['192.0.2.2'])
  t.match(follower.status, { generation: 'v2', error: '' })
})

t.test('a NOTIFY has it asked at once, a flood of them not more often', async (t) => {
  const zone = new ExportedZone(1, [peerRecord(endpoint())])
  const { follower, pass, targets, types } = await setUp(t, zone)
  zone.put(2, [peerRecord(endpoint({ targets: ['192.0.2.2'] }))])
  for (let i = 0; i < 100; i++) follower.notify()
  await pass(0.1)
  t.strictSame(targets(), ['192.0.2.2'])
  t.strictSame(types(), ['SOA', 'AXFR', 'SOA', 'IXFR'])
})

t.test('the data of a peer is kept while the peer is silent, and recovers', async (t) => {
  const zone = new ExportedZone(1, [peerRecord(endpoint())])
  const { server, follower, pass, targets, clock, lines } = await setUp(t, zone)
  const seen = lastSeen(clock)
  await server.stop()
  await pass(1)
  t.match(follower.status, { error: 'connection refused', ...seen })
  t.strictSame(targets(), ['192.0.2.1'])
  const asked = follower.status.failures
  for (let i = 0; i < 60; i++) await pass(1)
  t.ok(follower.status.failures - asked < 20, 'a dead peer is asked rarely')
  zone.put(2, [peerRecord(endpoint({ targets: ['192.0.2.2'] }))])
  await server.start()
  follower.notify()
  await pass(0.1)
  t.match(follower.status, { error: '', ...lastSeen(clock) })
  t.strictSame(targets(), ['192.0.2.2'])
  t.equal(lines.filter((line) => line.includes('are kept')).length, 1)
  t.equal(lines.filter((line) => line.includes('answers again')).length, 1)
})

t.test('a serial that is behind is that of a peer that began anew: all is taken', async (t) => {
  const zone = new ExportedZone(9, [peerRecord(endpoint())])
  const { pass, targets, types } = await setUp(t, zone)
  zone.put(3, [peerRecord(endpoint({ targets: ['192.0.2.3'] }))])
  await pass(1)
  t.strictSame(targets(), ['192.0.2.3'])
  t.equal(types().at(-1), 'AXFR')
})

t.test('a site that has nothing any more says so', async (t) => {
  const zone = new ExportedZone(1, [peerRecord(endpoint())])
  const { follower, pass, targets } = await setUp(t, zone)
  targets()
  zone.put(2, [])
  await pass(1)
  t.match(follower.siteStatesOf(HOST), [{ site: 'east', endpoints: [], generation: 'v2' }])
  t.equal(follower.status.generation, 'v2')
})

const OLD = [
  record(`${HOST}.kdrnt.`, 'CNAME', `klb.${HOST}.kdrnt.`),
  record(`klb.${HOST}.kdrnt.`, 'CNAME', `geo-eu.klb.${HOST}.kdrnt.`),
  record(`klb.${HOST}.kdrnt.`, 'CNAME', `geo-na.klb.${HOST}.kdrnt.`),
  record(`geo-eu.klb.${HOST}.kdrnt.`, 'CNAME', `eu1.klb.${HOST}.kdrnt.`),
  record(`geo-na.klb.${HOST}.kdrnt.`, 'CNAME', `na1.klb.${HOST}.kdrnt.`),
  record(`eu1.klb.${HOST}.kdrnt.`, 'A', '192.0.2.1'),
  record(`na1.klb.${HOST}.kdrnt.`, 'A', '192.0.2.2'),
  record(`na1.klb.${HOST}.kdrnt.`, 'AAAA', '2001:db8::2'),
  record(`w.${HOST}.kdrnt.`, 'TXT', `"100,geo-eu.klb.${HOST}.kdrnt"`),
  record(`w.${HOST}.kdrnt.`, 'TXT', `"200,geo-na.klb.${HOST}.kdrnt"`),
  record(`g.${HOST}.kdrnt.`, 'TXT', '"geo=GEO-EU" "type=continent" "default=false"'),
  record(`g.${HOST}.kdrnt.`, 'TXT', '"geo=GEO-NA" "type=continent" "default=true"'),
]
const OLD_TARGETS = [
  `klb.${HOST}`,
  `geo-eu.klb.${HOST}`,
  `geo-na.klb.${HOST}`,
  `eu1.klb.${HOST}`,
  `na1.klb.${HOST}`,
  '192.0.2.1',
  '192.0.2.2',
  '2001:db8::2',
].sort()

t.test('a peer that refuses its zone is asked for each host that is wanted', async (t) => {
  const zone = new ExportedZone(1, OLD)
  zone.transferRcode = 5
  const { server, follower, pass, targets, lines, changed } = await setUp(t, zone)
  t.strictSame(targets(), [])
  follower.want(HOST)
  await pass(1)
  await until(() => targets().length > 0, 'the host')
  t.strictSame(targets().sort(), OLD_TARGETS)
  t.match(follower.status, { generation: 'v1', site: `127.0.0.1:${server.port}`, endpoints: 8 })
  t.match(lines.join('\n'), `is queried for each host: the primary answered REFUSED; ${V1_LACKS}`)
  t.strictSame(changed, [HOST])
  const found = follower.siteStatesOf(HOST)[0]!.endpoints.map(peerTextOf)
  const geo = found.find((e) => e.geoCodes[0] === 'GEO-NA')
  t.match(geo, { isDefault: true, targets: [`geo-na.klb.${HOST}`] })
  zone.put(2, [])
  await pass(1)
  await until(() => targets().length === 0, 'the host to go')
  zone.transferRcode = 0
  zone.put(3, [peerRecord(endpoint())])
  await pass(TRANSFER_RETRY_MS / 1000)
  await until(() => follower.status.generation === 'v2', 'it to be followed')
  t.strictSame(targets(), ['192.0.2.1'])
})

t.test('a peer with a transferable zone without v2 records is queried too', async (t) => {
  const zone = new ExportedZone(1, OLD)
  const { follower, pass, targets } = await setUp(t, zone)
  follower.want(HOST)
  await pass(1)
  await until(() => targets().length > 0, 'the host')
  t.strictSame(targets().sort(), OLD_TARGETS)
  zone.put(2, [...OLD, peerRecord(endpoint({ targets: ['192.0.2.7'] }))])
  await pass(1)
  t.equal(follower.status.generation, 'v2', 'as soon as it does')
  t.strictSame(targets(), ['192.0.2.7'])
})

t.test('a peer with an empty zone is followed, until it turns out to be a v1 peer', async (t) => {
  const zone = new ExportedZone(1, [])
  const { follower, pass, targets, types } = await setUp(t, zone)
  follower.want(HOST)
  t.equal(follower.status.generation, 'v2')
  t.equal(follower.hasAnsweredFor(HOST), true, 'that it has nothing')
  zone.put(2, [peerRecord(endpoint({ setIdentifier: 'one' }))])
  await pass(1)
  t.strictSame(targets(), ['192.0.2.1'])
  t.strictSame(types(), ['SOA', 'AXFR', 'SOA', 'IXFR'], 'nothing was asked for by the host')
  const old = await setUp(t, zone)
  zone.put(3, [])
  await old.pass(1)
  t.equal(old.follower.status.generation, 'v2')
  const late = new ExportedZone(1, [])
  const { follower: other, ...rest } = await setUp(t, late)
  other.want(HOST)
  late.put(2, OLD)
  await rest.pass(1)
  t.equal(other.status.generation, 'v1')
  t.equal(other.hasAnsweredFor('b.k.example.com'), false, 'no query was sent')
  await until(() => rest.targets().length > 0, 'the host')
  t.equal(other.hasAnsweredFor(HOST), true)
})

t.test('v2 data is read also from a peer that refuses transfers', async (t) => {
  const shared = endpoint({ weight: 7, geoCodes: ['DE'], setIdentifier: 'one' })
  const zone = new ExportedZone(1, [peerRecord(shared), ...OLD])
  zone.transferRcode = 5
  const { follower, pass, targets } = await setUp(t, zone)
  follower.want(HOST)
  await pass(1)
  await until(() => targets().length > 0, 'the host')
  t.strictSame(follower.siteStatesOf(HOST)[0]!.endpoints, [shared])
})

t.test('a peer that is asked for each host stands by its word between two looks', async (t) => {
  const zone = new ExportedZone(1, [peerRecord(endpoint({ ttlSeconds: 15 }))])
  zone.transferRcode = 5
  const { follower, server, pass, targets } = await setUp(t, zone)
  follower.want(HOST)
  await pass(1)
  await until(() => targets().length > 0, 'the host')
  const seen = () => follower.siteStatesOf(HOST)[0]!.seenMs
  const firstMs = seen()
  for (let second = 1; second <= 10; second++) await pass(1)
  t.equal(seen(), firstMs + 10_000, 'it was heard')
  server.script = (query, isTcp) => {
    return query.question!.type === RRType.SOA ? zone.script(query, isTcp) : 2
  }
  await pass(10)
  await until(() => follower.status.failures > 0, 'a question in vain')
  t.equal(seen(), firstMs, 'what it does not answer for it does not stand by')
  t.strictSame(targets(), ['192.0.2.1'])
  server.script = zone.script
  await pass(20)
  await until(() => seen() > firstMs, 'it to answer again')
  t.equal(seen(), firstMs + 40_000)
})

t.test('with a key nothing unsigned is taken, and no host is asked for', async (t) => {
  const key = createTsigKey(scanName('key.example.')!, HMAC_SHA256, new Uint8Array(32))
  const zone = new ExportedZone(1, [peerRecord(endpoint()), ...OLD])
  const { follower, pass, targets, types, lines } = await setUp(t, zone, { key })
  follower.want(HOST)
  await pass(1)
  t.strictSame(targets(), [])
  t.match(follower.status, { generation: '', error: /not signed/ })
  t.strictSame([...new Set(types())], ['SOA'])
  t.match(lines.join('\n'), /not signed/)
})

t.test('a peer without a zone kdrnt is logged', async (t) => {
  const zone = new ExportedZone(1, [])
  const { follower, server, pass } = await setUp(t, zone)
  server.script = () => 5
  await pass(1)
  t.match(follower.status.error, 'the peer answered REFUSED to the SOA query for kdrnt')
})

t.test('a host is asked for as often as its TTLs say, and when the serial is new', async (t) => {
  const short = { ...record(`${HOST}.kdrnt.`, 'A', '192.0.2.1'), ttlSeconds: 30 }
  const zone = new ExportedZone(1, [short])
  zone.transferRcode = 5
  const { server, follower, pass, targets } = await setUp(t, zone)
  follower.want(HOST)
  const isAsked = (): number => {
    const count = server.asked.filter(({ query }) => query.question!.type === RRType.A).length
    return count
  }
  await pass(1)
  await until(() => targets().length > 0, 'the host')
  const first = isAsked()
  zone.put(1, [{ ...short, rdata: Uint8Array.of(192, 0, 2, 2) }])
  for (let i = 0; i < 29; i++) await pass(1)
  t.equal(isAsked(), first, 'not before its TTL is over, though 15 seconds are')
  await pass(2)
  await until(() => targets().join() === '192.0.2.2', 'the host')
  zone.put(2, [{ ...short, rdata: Uint8Array.of(192, 0, 2, 3) }])
  await pass(1)
  await until(() => targets().join() === '192.0.2.3', 'the change of the new serial')
})

t.test('the bounds hold for TTLs of both ends', async (t) => {
  const zone = new ExportedZone(1, [
    { ...record(`${HOST}.kdrnt.`, 'A', '192.0.2.1'), ttlSeconds: 0 },
  ])
  zone.transferRcode = 5
  const hostBounds = { minMs: 20_000, maxMs: 40_000 }
  const { server, follower, pass, targets } = await setUp(t, zone, { hostBounds })
  follower.want(HOST)
  const count = (): number =>
    server.asked.filter(({ query }) => query.question!.type === RRType.A).length
  await pass(1)
  await until(() => targets().length > 0, 'the host')
  const first = count()
  for (let i = 0; i < 19; i++) await pass(1)
  t.equal(count(), first)
  await pass(2)
  await until(() => count() > first, 'the host to be asked for')
})

t.test('a peer that changes the name of its site', async (t) => {
  const zone = new ExportedZone(1, [peerRecord(endpoint())])
  const { follower, pass, lines } = await setUp(t, zone)
  zone.put(2, [peerRecord(endpoint({ site: 'west', targets: ['192.0.2.2'] }))])
  await pass(1)
  const states = follower.siteStatesOf(HOST).filter(({ endpoints }) => endpoints.length > 0)
  t.strictSame(
    states.map(({ site }) => site),
    ['west'],
    'the endpoints of the old name are removed',
  )
  const renamed = lines.filter((line) => line.includes('its site was east and is now west'))
  t.equal(renamed.length, 1)
})

t.test('a peer that changes all the time does not fill the log', async (t) => {
  const zone = new ExportedZone(1, [peerRecord(endpoint())])
  const { server, pass, lines } = await setUp(t, zone)
  for (let i = 2; i < 50; i++) {
    zone.put(i, [peerRecord(endpoint({ site: `s${i}` }))])
    server.script = i % 5 === 0 ? () => 1 + (i % 4) : zone.script
    await pass(1)
  }
  t.equal(lines.length, 20)
  await pass(60)
  zone.put(50, [peerRecord(endpoint({ site: 'last' }))])
  await pass(5)
  t.match(lines.slice(20).join('\n'), /peer 127.0.0.1:\d+: \d+ more lines/)
})
