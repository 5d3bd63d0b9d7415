import fc from 'fast-check'
import t from 'tap'
import { printLatin1 } from '../../../src/base/latin1.ts'
import { type CachedPeer, identityOf } from '../../../src/peering/cache/cached-peer.ts'
import {
  type CachedPeers,
  cachedPeers,
  DOWN_MAX,
  printPeerCache,
} from '../../../src/peering/cache/peer-cache-text.ts'
import type { PeerEndpoint, SiteState } from '../../../src/peering/peer-endpoint.ts'
import { PEER_ENDPOINTS_MAX } from '../../../src/peering/read-v2.ts'
import { composePeerEndpoint } from '../../../src/peering/v2-codec.ts'
import { runs } from '../../support/runs.ts'
import { FakeClock } from '../../support/setup.ts'
import { HOST, recordFields, shared } from '../samples.ts'

const PEER = '192.0.2.53:53'

const endpoints: fc.Arbitrary<PeerEndpoint> = fc
  .record({
    weight: fc.option(fc.nat(1_000_000), { nil: undefined }),
    geoCodes: fc.subarray(['DE', 'GEO-EU']),
    setIdentifier: fc.constantFrom('', 'one', 'ü 2'),
    targets: fc.subarray(['192.0.2.1', '192.0.2.2', '192.0.2.3'], { minLength: 1 }),
    health: fc.constantFrom('up', 'down', 'unknown'),
    sinceSeconds: fc.nat(),
    fields: recordFields,
  })
  .map(({ fields, ...given }) => shared({ ...given, ...fields }))

const endpointLists = fc.array(endpoints, { minLength: 1, maxLength: 4 })

function zoneOf(list: readonly PeerEndpoint[]): ReadonlyMap<string, ReadonlySet<string>> {
  return new Map([[HOST, new Set(list.map((one) => printLatin1(composePeerEndpoint(one)!)))]])
}

function hostsOf(list: readonly PeerEndpoint[], seenMs: number): readonly [string, SiteState[]][] {
  const own = list.map((one) => ({ ...one, site: PEER }))
  const from = { site: PEER, exporter: PEER, isOwn: true, generation: 'v1' } as const
  const share: SiteState = { ...from, rootHost: HOST, endpoints: own, seenMs }
  return [[HOST, [share]]]
}

/** What a v2 peer answered for the host: one state for each site. */
function askedOf(
  sites: readonly (readonly [site: string, isOwn: boolean, list: readonly PeerEndpoint[]])[],
  seenMs: number,
): readonly [string, SiteState[]][] {
  const shares = sites.map(([site, isOwn, list]): SiteState => {
    const endpoints = list.map((one) => ({ ...one, site }))
    return { site, exporter: PEER, isOwn, generation: 'v2', rootHost: HOST, endpoints, seenMs }
  })
  return [[HOST, shares]]
}

function print(peers: readonly CachedPeer[], clock: FakeClock): string[] {
  const parts = { site: 'west', clock, onCut: () => t.fail('there is room') }
  return [...printPeerCache(peers, new Map(), parts)].join('').split('\n').slice(0, -1)
}

t.test('endpoints of peers is read as it was, by a process with other clocks', async (t) => {
  const peers = fc.record({
    zone: endpointLists,
    asked: endpointLists,
    sites: fc.tuple(
      fc.tuple(fc.constant('east'), fc.boolean(), endpointLists),
      // Of a site that has nothing only its own nameserver says so.
      fc.tuple(fc.constant('west'), fc.constant(true), fc.constantFrom([], [shared()])),
    ),
    isNew: fc.boolean(),
    ownSite: fc.constantFrom('', 'east', undefined),
    agesMs: fc.tuple(fc.nat(), fc.nat()),
  })
  fc.assert(
    fc.property(peers, fc.nat(100_000), (drawn, downMs) => {
      const { zone, asked, sites, isNew, ownSite, agesMs } = drawn
      const clock = new FakeClock()
      const at = (ageMs: number): number => clock.monotonicMs - ageMs
      const given: CachedPeer = {
        address: PEER,
        keyName: isNew ? '' : 'key.example.',
        generation: isNew ? 'v2' : 'v1',
        seenMs: at(agesMs[0]),
        zoneSeenMs: isNew ? at(agesMs[1]) : Number.NEGATIVE_INFINITY,
        serial: isNew ? 7 : undefined,
        ownSite: isNew ? ownSite : undefined,
        zone: zoneOf(zone),
        hosts: isNew ? askedOf(sites, at(agesMs[1])) : hostsOf(asked, at(agesMs[1])),
      }
      const later = new FakeClock()
      later.nowMs = clock.nowMs + downMs
      later.monotonicMs = 5
      const read = cachedPeers('west', later).scan(print([given], clock)) as CachedPeers
      const found = read.peers.get(identityOf(given))!
      const shiftMs = later.monotonicMs - clock.monotonicMs - downMs
      t.match(found, {
        address: given.address,
        keyName: given.keyName,
        generation: given.generation,
        seenMs: given.seenMs + shiftMs,
        zoneSeenMs: given.zoneSeenMs + shiftMs,
        serial: given.serial,
        ownSite: given.ownSite,
      })
      t.strictSame(found.zone, given.zone)
      const movedMs = at(agesMs[1]) + shiftMs
      const moved = isNew ? askedOf(sites, movedMs) : hostsOf(asked, movedMs)
      t.strictSame([...found.hosts], [...moved])
    }),
    { numRuns: runs(100), seed: 7 },
  )
})

t.test('addresses that are down are read as they were', async (t) => {
  const clock = new FakeClock()
  const seenMs = clock.monotonicMs - 5000
  const down = new Map([
    ['a.example', { addresses: new Set(['192.0.2.1', '2001:db8::1']), seenMs }],
    ['b.example', { addresses: new Set(['lb.example.net']), seenMs }],
  ])
  const parts = { site: 'west', clock, onCut: () => t.fail('there is room') }
  const lines = [...printPeerCache([KEPT], down, parts)].join('').split('\n').slice(0, -1)
  const read = cachedPeers('west', clock).scan(lines) as CachedPeers
  t.strictSame(read.down, down)
  t.equal(read.peers.size, 1)
  const future = lines.map((line) => line.replace(/^(down \S+) \d+/, '$1 999999999999999'))
  const ahead = (cachedPeers('west', clock).scan(future) as CachedPeers).down.get('a.example')
  t.equal(ahead?.seenMs, clock.monotonicMs, 'a time in the future counts as now')
})

t.test('too many addresses that are down are cut, and reading them ends', async (t) => {
  const clock = new FakeClock()
  const addresses = new Set(Array.from({ length: DOWN_MAX + 7 }, (_, i) => `h${i}.example.net`))
  const down = new Map([[HOST, { addresses, seenMs: 0 }]])
  const cuts: string[] = []
  const onCut = (address: string, count: number) => cuts.push(`${address} ${count}`)
  const text = [...printPeerCache([KEPT], down, { site: 'west', clock, onCut })].join('')
  t.strictSame(cuts, [' 7'])
  const lines = text.split('\n').slice(0, -1)
  const { scan } = cachedPeers('west', clock)
  lines.splice(1, 0, `down ${HOST} 1 more.example.net`)
  const read = scan(lines) as CachedPeers
  t.equal(read.down.get(HOST)?.addresses.size, DOWN_MAX)
  t.equal(read.peers.size, 1, 'the peer is kept')
})

const KEPT: CachedPeer = {
  address: PEER,
  keyName: '',
  generation: 'v2',
  seenMs: 0,
  zoneSeenMs: 0,
  serial: 1,
  ownSite: undefined,
  zone: zoneOf([shared()]),
  hosts: [],
}

t.test('the file of another site is refused, and may be replaced', async (t) => {
  const clock = new FakeClock()
  const found = cachedPeers('east', clock).scan(print([KEPT], clock))
  t.match(found, { kind: 'refused', reason: 'it belongs to site "west"', isForeign: false })
})

t.test('a line that is none of such a file', async (t) => {
  const clock = new FakeClock()
  const good = print([KEPT], clock)
  const { scan } = cachedPeers('west', clock)
  t.equal((scan(good) as CachedPeers).peers.size, 1)
  const lines = [
    'x',
    'told',
    'told !',
    'zone',
    'zone a b',
    'host a v3 1',
    'host a v2 1 own',
    'host a v2 1 mine east',
    'own',
    'own !',
    'own a b',
    'down',
    'down a 1',
    'down a x 192.0.2.1',
    'down a 1 192.0.2.1 192.0.2.2',
    `down ${'a'.repeat(256)} 1 192.0.2.1`,
    // Behind a peer.
    'down a 1 192.0.2.1',
    'peer a v2 1 1 1',
    'peer a:1 - v2 - - -',
  ]
  for (const line of lines) t.equal(scan([...good, line]), undefined, line)
  for (const at of good.keys()) {
    if (at !== good.length - 1)
      t.equal(scan(good.filter((_, i) => i !== at)), undefined, `${at} is missing`)
  }
})

t.test('a file of before is read, and who is a nameserver of a site is guessed', async (t) => {
  const clock = new FakeClock()
  const one = [shared()]
  const table: readonly {
    readonly name: string
    readonly given: readonly (readonly [string, boolean, readonly PeerEndpoint[]])[]
    readonly want: readonly (readonly [string, boolean])[]
  }[] = [
    { name: 'of one site', given: [['east', false, one]], want: [['east', true]] },
    {
      name: 'of several',
      given: [
        ['east', true, one],
        ['west', false, one],
      ],
      want: [
        ['east', false],
        ['west', false],
      ],
    },
  ]
  for (const { name, given, want } of table) {
    const lines = print([{ ...KEPT, ownSite: 'east', hosts: askedOf(given, 0) }], clock)
    const before = lines
      .filter((line) => !line.startsWith('own '))
      .map((line) => line.replace(/ (own|relayed) \S+$/, ''))
    t.notSame(before, lines)
    const found = (cachedPeers('west', clock).scan(before) as CachedPeers).peers.get(PEER)
    t.equal(found?.ownSite, undefined, name)
    const [host] = [...(found?.hosts ?? [])]
    const shares = host?.[1].map(({ site, isOwn }) => [site, isOwn])
    t.strictSame(shares, want, name)
  }
})

t.test('an unusable state of one peer does not affect the others', async (t) => {
  const clock = new FakeClock()
  const { scan } = cachedPeers('west', clock)
  const asked = { ...KEPT, generation: 'v1' as const, hosts: hostsOf([shared()], 0) }
  const other = { ...KEPT, address: 'b:53' }
  const lines = (peer: CachedPeer): string[] => print([peer, other], clock)
  const foreign = lines(asked).map((line) => line.replace(`host ${HOST}`, 'host other.example'))
  const invalid = lines(asked).map((line, i, all) =>
    all[i - 1]?.startsWith('host ') === true ? 'told Bnk9MQ==' : line,
  )
  const names = Array.from({ length: PEER_ENDPOINTS_MAX }, (_, i) => String(i))
  const many = { ...asked, zone: new Map([[HOST, new Set(names)]]) }
  const table = [
    { name: 'an endpoint of another host', given: foreign },
    { name: 'one that this version would not take', given: invalid },
    { name: 'as much as a zone may have, and hosts beside it', given: lines(many) },
  ]
  for (const { name, given } of table) {
    const found = scan(given) as CachedPeers
    t.equal(found?.peers.size, 2, name)
    t.strictSame([...(found.peers.get(PEER)?.hosts ?? [])], [], name)
    t.strictSame(found.peers.get('b:53')?.zone, KEPT.zone, name)
  }
  const empty = { ...KEPT, zone: new Map([[HOST, new Set([''])]]) }
  t.strictSame(
    (scan(lines(empty)) as CachedPeers).peers.get(PEER)?.zone,
    empty.zone,
    'rdata of no octets',
  )
})

t.test(
  'a peer with more than its part of the room loses the rest, and no other does',
  async (t) => {
    const clock = new FakeClock()
    const names = Array.from({ length: 100 }, (_, i) => `h${i}.example`)
    const zone = new Map(names.map((name) => [name, new Set(['x'.repeat(300)])]))
    const cuts: string[] = []
    const parts = {
      site: 'west',
      clock,
      onCut: (address: string, endpoints: number) => cuts.push(`${address} ${endpoints}`),
      octetsMax: 20_000,
    }
    const text = [
      ...printPeerCache(
        [
          { ...KEPT, zone },
          { ...KEPT, address: 'b:53' },
        ],
        new Map(),
        parts,
      ),
    ].join('')
    t.ok(text.length < 20_000)
    t.match(cuts, [/^192\.0\.2\.53:53 \d\d$/])
    const read = cachedPeers('west', clock).scan(text.split('\n').slice(0, -1)) as CachedPeers
    const kept = read.peers.get(PEER)!.zone.size
    t.equal(`${PEER} ${100 - kept}`, cuts[0])
    t.strictSame(read.peers.get('b:53')!.zone, KEPT.zone)
  },
)

// It took minutes, with nothing served meanwhile.
t.test('a host with very many sites is read in no time', (t) => {
  const sites = Array.from({ length: 50_000 }, (_, i) => `host ${HOST} v2 1 relayed s${i}`)
  const text = ['site west', `peer ${PEER} - v2 1 - 5`, ...sites]
  const startMs = performance.now()
  const read = cachedPeers('west', new FakeClock()).scan(text) as CachedPeers
  const tookMs = performance.now() - startMs
  t.equal([...read.peers.get(PEER)!.hosts][0]?.[1].length, 50_000)
  t.ok(tookMs < 15_000, `${tookMs} ms`)
  t.end()
})
