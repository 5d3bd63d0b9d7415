import fc from 'fast-check'
import t from 'tap'
import { runWhole } from '../../src/base/slices.ts'
import type { ResourceRecord } from '../../src/dns/message/message.ts'
import { PeerZone } from '../../src/peering/peer-zone.ts'
import { PEER_ENDPOINTS_MAX } from '../../src/peering/read-v2.ts'
import { TransferFault } from '../../src/xfr/in/transfer-reader.ts'
import { ZoneRecords } from '../../src/zone/zonefile/records.ts'
import { ScannedRecord } from '../../src/zone/zonefile/sink.ts'
import { peerRecord, record } from '../support/exported-zone.ts'
import { endpoint, type PeerText } from '../support/peer-text.ts'

// Long: it builds zones that are too large.

const HOST = 'app.k.example.com'

function zoneOf(records: readonly ResourceRecord[]): ZoneRecords {
  const zone = new ZoneRecords()
  const scanned = new ScannedRecord()
  for (const { owner, type, ttlSeconds, rdata } of records) {
    scanned.owner.set(owner)
    Object.assign(scanned, { ownerOctets: owner.length, type, ttlSeconds, rdata })
    Object.assign(scanned, { rdataOctets: rdata.length, file: 'x', line: 1 })
    zone.add(scanned)
  }
  return zone
}

function replaced(endpoints: readonly Partial<PeerText>[]): PeerZone {
  const zone = new PeerZone('p:53')
  runWhole(zone.replace(zoneOf(endpoints.map((one) => peerRecord(endpoint(one)))), new Set()))
  return zone
}

const step = (removed: readonly ResourceRecord[], added: readonly ResourceRecord[]) => ({
  removed,
  added,
  fromSerial: 1,
  toSerial: 2,
})

const siteStatesOf = (zone: PeerZone, host = HOST) =>
  zone
    .read(host, 5)
    .siteStates.map(({ site, rootHost, isOwn, endpoints }) => [
      site,
      rootHost,
      isOwn,
      endpoints.length,
    ])

t.test('a peer of one site reports a state of every host, also an empty one', async (t) => {
  const zone = replaced([{ site: 'east' }])
  t.equal(zone.ownSite, 'east')
  t.strictSame(siteStatesOf(zone), [
    ['east', HOST, true, 1],
    ['east', `*.${HOST}`, true, 0],
  ])
  t.strictSame(siteStatesOf(zone, 'b.k.example.com'), [
    ['east', 'b.k.example.com', true, 0],
    ['east', '*.b.k.example.com', true, 0],
  ])
})

t.test('a relay of several sites reports only the states in its zone', async (t) => {
  const host = 'b.k.example.com'
  const zone = replaced([{ site: 'east' }, { site: 'west', rootHost: host, dnsName: host }])
  t.equal(zone.ownSite, '')
  t.strictSame(siteStatesOf(zone), [['east', HOST, false, 1]])
  t.strictSame(siteStatesOf(zone, host), [['west', host, false, 1]])
  t.strictSame(siteStatesOf(zone, 'c.k.example.com'), [])
  t.strictSame(zone.sites, ['east', 'west'])
})

t.test(
  'the site of a nameserver comes from its zone, and is kept while the zone is empty',
  async (t) => {
    const [east, west] = [peerRecord(endpoint()), peerRecord(endpoint({ site: 'west' }))]
    const zone = replaced([{}])
    runWhole(zone.advance([step([], [west])], new Set()))
    t.equal(zone.ownSite, '')
    runWhole(zone.advance([step([east], [])], new Set()))
    t.equal(zone.ownSite, 'west')
    runWhole(zone.advance([step([west], [])], new Set()))
    t.equal(zone.ownSite, 'west')
    t.strictSame(zone.sites, ['west'])
    t.equal(zone.isOld, false)
    t.strictSame(siteStatesOf(zone)[0], ['west', HOST, true, 0])
  },
)

t.test(
  'the site that a peer is a nameserver of comes from the peer cache, else from its zone',
  async (t) => {
    const of = (...sites: readonly string[]): readonly [PeerZone['exported'], string] => {
      const zone = replaced(sites.map((site) => ({ site })))
      return [zone.exported, zone.ownSite]
    }
    const [one, several] = [of('east'), of('east', 'west')]
    const nothing = new Map<string, ReadonlySet<string>>()
    const table: readonly {
      readonly name: string
      readonly given: readonly [PeerZone['exported'], string | undefined]
      readonly want: string
    }[] = [
      { name: 'of one site, as it was', given: one, want: 'east' },
      { name: 'of several, as it was', given: several, want: '' },
      { name: 'of nothing, whose site was known', given: [nothing, 'east'], want: 'east' },
      { name: 'one site, where not all was kept', given: [one[0], ''], want: '' },
      { name: 'one site, by a file of before', given: [one[0], undefined], want: 'east' },
      { name: 'several, by a file of before', given: [several[0], undefined], want: '' },
      { name: 'nothing, by a file of before', given: [nothing, undefined], want: '' },
    ]
    for (const { name, given, want } of table) {
      const zone = new PeerZone('192.0.2.53:53')
      zone.recall(...given)
      t.equal(zone.ownSite, want, name)
      const says = siteStatesOf(zone, 'c.k.example.com')
      t.strictSame(says[0], want === '' ? undefined : [want, 'c.k.example.com', true, 0], name)
    }
  },
)

t.test('differences that lead to too much are not taken at all', async (t) => {
  const zone = replaced([{}])
  const before = zone.read(HOST, 5)
  const changed = new Set<string>()
  const other = endpoint({ targets: ['192.0.2.77'], rootHost: 'z.example', dnsName: 'z.example' })
  const { owner } = peerRecord(endpoint())
  const text = (i: number): ResourceRecord => {
    const rdata = Uint8Array.of(4, i & 255, (i >> 8) & 255, (i >> 16) & 255, 0)
    return { ...peerRecord(endpoint()), owner, rdata }
  }
  const added = Array.from({ length: PEER_ENDPOINTS_MAX }, (_, i) => text(i))
  const steps = [step([peerRecord(endpoint())], [peerRecord(other)]), step([], added)]
  t.throws(() => runWhole(zone.advance(steps, changed)), /more than 500000 endpoints/)
  t.strictSame(zone.read(HOST, 5), before)
  t.equal(zone.count, 1)
  t.strictSame([...zone.hosts()], [HOST])
  t.strictSame([...changed], [])
  runWhole(zone.advance([step([peerRecord(endpoint())], [peerRecord(other)])], changed))
  t.strictSame([...zone.hosts()], ['z.example'])
  t.strictSame([...changed].sort(), [HOST, 'z.example'])
})

t.test('octets have a bound as well, also over many differences', async (t) => {
  const zone = replaced([{}])
  const big = (i: number): ResourceRecord => {
    const rdata = new Uint8Array(65_280).fill(255)
    for (let at = 0; at < rdata.length; at += 256) rdata[at + 1] = i & 255
    rdata[2] = i >> 8
    return { ...peerRecord(endpoint()), rdata }
  }
  let fault = ''
  let taken = 0
  for (; taken < 20 && fault === ''; taken++) {
    const added = Array.from({ length: 200 }, (_, i) => big(taken * 200 + i))
    try {
      runWhole(zone.advance([step([], added)], new Set()))
    } catch (error) {
      if (!(error instanceof TransferFault)) throw error
      fault = error.message
    }
  }
  t.match(fault, /more than 134217728 octets/)
  t.equal(zone.count, 1 + 200 * (taken - 1))
})

t.test('edits come to the same as the zone that they lead to', async (t) => {
  const sets = fc.array(
    fc.record({
      site: fc.constantFrom('east', 'west'),
      rootHost: fc.constantFrom(HOST, 'b.example'),
      target: fc.constantFrom('192.0.2.1', '192.0.2.2', '192.0.2.3'),
    }),
    { maxLength: 8 },
  )
  const print = (zone: PeerZone) => [
    zone.count,
    zone.sites,
    siteStatesOf(zone),
    [...zone.hosts()].sort(),
  ]
  const property = fc.property(sets, sets, (from, to) => {
    const records = (list: typeof from) => {
      const all = list.map(({ site, rootHost, target }) =>
        peerRecord(endpoint({ site, rootHost, dnsName: rootHost, targets: [target] })),
      )
      return [
        ...new Map(all.map((one) => [Buffer.from(one.rdata).toString('latin1'), one])).values(),
      ]
    }
    const [zone, want] = [new PeerZone('p:53'), new PeerZone('p:53')]
    runWhole(zone.replace(zoneOf(records(from)), new Set()))
    runWhole(want.replace(zoneOf(records(from)), new Set()))
    runWhole(want.replace(zoneOf(records(to)), new Set()))
    runWhole(zone.advance([step(records(from), records(to))], new Set()))
    t.strictSame(print(zone), print(want))
  })
  fc.assert(property, { seed: 4, numRuns: 200 })
})

t.test('a zone of addresses alone is that of a peer of before', async (t) => {
  const zone = new PeerZone('p:53')
  runWhole(zone.replace(zoneOf([record('x.kdrnt.', 'A', '192.0.2.1')]), new Set()))
  t.equal(zone.isOld, true)
  runWhole(zone.replace(zoneOf([peerRecord(endpoint())]), new Set()))
  zone.noteOthers()
  t.equal(zone.isOld, false)
})

t.test('observations are kept beside the endpoints, and count for nothing else', async (t) => {
  const observed = (health: string) =>
    record(`o2.${HOST}.kdrnt.`, 'TXT', `o=1 site=east a=192.0.2.9 health=${health} since=5`)
  const zone = new PeerZone('p:53')
  runWhole(zone.replace(zoneOf([peerRecord(endpoint()), observed('down')]), new Set()))
  t.equal(zone.count, 1)
  t.equal(zone.ownSite, 'east')
  t.strictSame(zone.read(HOST, 5).problems, [])
  t.strictSame(siteStatesOf(zone)[0], ['east', HOST, true, 1])
  const found = { site: 'east', address: '192.0.2.9', health: 'down', sinceSeconds: 5 }
  t.strictSame(zone.observationsOf(HOST), [found])
  const changed = new Set<string>()
  runWhole(zone.advance([step([observed('down')], [observed('up')])], changed))
  t.strictSame([...changed], [HOST])
  t.strictSame(zone.observationsOf(HOST), [{ ...found, health: 'up' }])
  const copy = new PeerZone('p:53')
  copy.recall(zone.exported, undefined)
  t.strictSame(copy.observationsOf(HOST), zone.observationsOf(HOST))
  t.equal(copy.count, 1)
  runWhole(zone.advance([step([observed('up')], [])], changed))
  t.strictSame(zone.observationsOf(HOST), [])
  t.equal(zone.count, 1)
})

t.test('health reports of unknown form decide nothing, and are refused', async (t) => {
  const observed = (text: string) => record(`o2.${HOST}.kdrnt.`, 'TXT', text)
  const zone = new PeerZone('p:53')
  const records = [
    observed('o=1 site=east a=192.0.2.9 health=down since=5'),
    observed('o=1 site=east a=192.0.2.9 health=half since=5'),
    observed('o=2 site=east a=192.0.2.9 health=down since=5'),
  ]
  runWhole(zone.replace(zoneOf([peerRecord(endpoint()), ...records]), new Set()))
  t.equal(zone.observationsOf(HOST).length, 1)
  t.strictSame(zone.read(HOST, 5).problems, [
    `${HOST}: 2 health reports of unknown form are ignored`,
  ])
})
