import t from 'tap'
import type { EndpointDrain } from '../../src/health/drain/drain.ts'
import { drainBySetting } from '../../src/health/drain/record-drain.ts'
import { findUnexportedFailover } from '../../src/peering/export-settings.ts'
import {
  carrySince,
  keepLaterSince,
  type RecordFacts,
  toPeerEndpoints,
} from '../../src/peering/to-peer-endpoint.ts'
import { composePeerEndpoint, scanPeerEndpoint } from '../../src/peering/v2-codec.ts'
import { recordId } from '../../src/records/record-source.ts'
import { peerTextOf, targetsOf } from '../support/peer-text.ts'
import { dnsRecord, layout } from './records.ts'
import { shared } from './samples.ts'

const GATEWAY = {
  host: '*.k.example.com',
  cluster: 'c1',
  geo: 'GEO-EU',
  isDefault: true,
  weight: 120,
  addresses: ['192.0.2.1', '192.0.2.2'],
}
const record = dnsRecord({ rootHost: GATEWAY.host, endpoints: layout(GATEWAY) })
const FACTS: RecordFacts = { site: 'a', key: 'n/r', down: [], up: [], sinceSeconds: 1 }

function health(down: readonly string[], up: readonly string[]): string[] {
  const facts = { ...FACTS, down, up }
  return toPeerEndpoints(record, facts)
    .map(peerTextOf)
    .map((e) => `${e.dnsName} ${e.targets.join()} ${e.health}`)
}

t.test('a record is exported with the host as the record writes it', async (t) => {
  const exported = toPeerEndpoints(record, FACTS).map(peerTextOf)
  t.match(exported[0], {
    site: 'a',
    rootHost: '*.k.example.com',
    dnsName: '*.k.example.com',
    recordType: 'CNAME',
    ttlSeconds: 300,
    targets: ['klb.k.example.com'],
    sinceSeconds: 1,
  })
  t.match(exported[2], { setIdentifier: 'default', geoCodes: [], isDefault: true })
})

t.test('health of addresses goes up their chain', async (t) => {
  const chain = (word: string) => [
    `*.k.example.com klb.k.example.com ${word}`,
    `klb.k.example.com geo-eu.klb.k.example.com ${word}`,
    `klb.k.example.com geo-eu.klb.k.example.com ${word}`,
    `geo-eu.klb.k.example.com c1.klb.k.example.com ${word}`,
  ]
  const both = 'c1.klb.k.example.com 192.0.2.1,192.0.2.2'
  const [one, two] = ['192.0.2.1', '192.0.2.2']
  t.strictSame(health([], []), [...chain('unknown'), `${both} unknown`])
  t.strictSame(health([one, two], []), [...chain('down'), `${both} down`])
  t.strictSame(health([], [one, two]), [...chain('up'), `${both} up`])
  t.strictSame(health([], [one]), [...chain('unknown'), `${both} unknown`])
  t.strictSame(health([one], []).at(-1), `c1.klb.k.example.com 192.0.2.2 unknown`)
  t.strictSame(health([one], [two]).at(-1), `c1.klb.k.example.com 192.0.2.2 up`)
})

t.test('times go on where content and health are the same', async (t) => {
  const before = [shared({ sinceSeconds: 5 }), shared({ sinceSeconds: 6, weight: 1 })]
  const after = [shared(), shared({ weight: 2 }), shared({ health: 'down' })]
  t.strictSame(
    carrySince(before, after, 9).map((e) => e.sinceSeconds),
    [5, 9, 9],
  )
})

const HOST = 'k.example.com'
const CREATED = '2026-01-01T00:00:00Z'
const UNTIL_MS = Date.parse('2026-11-24T18:00:00.250Z')
const drainOf = (reason: string, untilMs?: number): EndpointDrain => {
  return drainBySetting('n/r', untilMs === undefined ? { reason } : { reason, untilMs }, 'a')
}
const [RACKS, POWER, ENDING] = [drainOf('racks'), drainOf('power'), drainOf('cables', UNTIL_MS)]

t.test('an endpoint has the age, the identity and the settings of its record', async (t) => {
  const endpoints = [{ dnsName: HOST, recordType: 'A', targets: ['192.0.2.1'], recordTTL: 60 }]
  const annotations = {
    'sextant.io/sticky': 'true',
    'sextant.io/drain': 'ended',
    'sextant.io/drain-until': CREATED,
    'sextant.io/all-down': 'closed',
  }
  const of = (given: object) => {
    const [endpoint] = toPeerEndpoints(dnsRecord({ rootHost: HOST, endpoints, ...given }), FACTS)
    const { createdSeconds, recordId, settings } = endpoint!
    return { createdSeconds, recordId, settings }
  }
  t.strictSame(of({ created: CREATED, annotations }), {
    createdSeconds: Date.parse(CREATED) / 1000,
    recordId: recordId('n/r'),
    // Only drains that are in force are exported.
    settings: { allDown: 'closed', sticky: { ipv4Bits: 24, ipv6Bits: 56 } },
  })
  t.strictSame(of({}), {
    createdSeconds: undefined,
    recordId: recordId('n/r'),
    settings: undefined,
  })
  t.notMatch(
    JSON.stringify(toPeerEndpoints(dnsRecord({ rootHost: HOST, endpoints }), FACTS)),
    /n\/r/,
  )
})

t.test('an endpoint that a drain takes out is exported as down, with the drain', async (t) => {
  const [a, b] = ['192.0.2.1', '192.0.2.2']
  const long = drainOf('é'.repeat(500))
  const table: readonly {
    readonly name: string
    readonly down?: readonly string[]
    readonly drains: readonly (readonly [index: number, drain: EndpointDrain])[]
    readonly want: string
  }[] = [
    { name: 'none', drains: [], want: `${a},${b} unknown` },
    { name: 'one target', drains: [[0, RACKS]], want: `${b} unknown` },
    {
      name: 'both',
      drains: [
        [0, RACKS],
        [1, RACKS],
      ],
      want: `${a},${b} down drained: racks`,
    },
    { name: 'both failed', down: [a, b], drains: [], want: `${a},${b} down` },
    {
      name: 'both drained and failed',
      down: [a, b],
      drains: [
        [0, RACKS],
        [1, RACKS],
      ],
      want: `${a},${b} down drained: racks`,
    },
    {
      name: 'the last one that works',
      down: [a],
      drains: [[1, POWER]],
      want: `${a},${b} down drained: power`,
    },
    {
      name: 'one that failed, as the other did',
      down: [a, b],
      drains: [[1, POWER]],
      want: `${a},${b} down`,
    },
    {
      name: 'by two drains',
      drains: [
        [0, ENDING],
        [1, POWER],
      ],
      want: `${a},${b} down drained: cables`,
    },
    {
      name: 'until a time',
      drains: [
        [0, ENDING],
        [1, ENDING],
      ],
      want: `${a},${b} down drained: cables until ${UNTIL_MS}`,
    },
    {
      name: 'for a long reason',
      drains: [
        [0, long],
        [1, long],
      ],
      want: `${a},${b} down drained: ${'é'.repeat(118)}…`,
    },
  ]
  const endpoints = [
    { dnsName: HOST, recordType: 'A', targets: [a, b], recordTTL: 60 },
    { dnsName: `c.${HOST}`, recordType: 'CNAME', targets: [HOST], recordTTL: 60 },
    { dnsName: `t.${HOST}`, recordType: 'TXT', targets: ['x'], recordTTL: 60 },
  ]
  const annotations = { 'sextant.io/drain': 'the annotation', 'sextant.io/sticky': 'false' }
  const record = dnsRecord({ rootHost: HOST, endpoints, annotations })
  for (const { name, down = [], drains, want } of table) {
    const facts = { ...FACTS, down, drains: { endpoints: [new Map(drains), new Map(), new Map()] } }
    const [own, cname, text] = toPeerEndpoints(record, facts)
    const { drain, ...others } = own!.settings ?? {}
    const until = drain?.untilMs === undefined ? '' : ` until ${drain.untilMs}`
    const drained = drain === undefined ? '' : ` drained: ${drain.reason}${until}`
    t.equal(`${targetsOf([own!]).join()} ${own!.health}${drained}`, want, name)
    t.strictSame(others, { sticky: 'off' })
    // A CNAME to nothing but failed addresses has failed.
    const reason = down.length === 2 ? undefined : drain?.reason
    t.equal(cname!.settings?.drain?.reason, reason, `${name}: a CNAME to it`)
    t.strictSame(text!.settings, { sticky: 'off' }, `${name}: another type`)
    for (const one of [own!, cname!, text!]) {
      t.strictSame(scanPeerEndpoint(composePeerEndpoint(one)!), one, `${name}: as v2`)
    }
  }
})

t.test('the begin and the end of a drain, and another setting, are changes', async (t) => {
  const table = [
    { settings: undefined, same: true },
    { settings: { drain: { reason: 'x' } }, same: false },
    { settings: { sticky: 'off' as const }, same: false },
  ]
  for (const { settings, same } of table) {
    const before = [shared({ sinceSeconds: 5 })]
    const after = [shared({ settings })]
    t.equal(carrySince(before, after, 9)[0]!.sinceSeconds, same ? 5 : 9)
    t.equal(carrySince(after, before, 9)[0]!.sinceSeconds, same ? 0 : 9)
    t.equal(keepLaterSince(before, after)[0]!.sinceSeconds, same ? 5 : 0)
  }
})

t.test('a failover list that is too long for so many endpoints is not exported', async (t) => {
  const failover = Array.from({ length: 60 }, (_, i) => `AS${i + 1}: a, b, c`).join('\n')
  const recordOf = (count: number) => {
    const endpoints = Array.from({ length: count }, (_, i) => {
      return { dnsName: `n${i}.${HOST}`, recordType: 'A', targets: ['192.0.2.1'], recordTTL: 60 }
    })
    const annotations = { 'sextant.io/failover': failover, 'sextant.io/sticky': 'true' }
    return dnsRecord({ rootHost: HOST, endpoints, annotations })
  }
  const keysOf = (count: number) =>
    Object.keys(toPeerEndpoints(recordOf(count), FACTS)[0]!.settings!)
  t.strictSame(keysOf(100), ['sticky', 'failover'])
  t.equal(findUnexportedFailover(recordOf(100)), '')
  t.strictSame(keysOf(900), ['sticky'])
  t.match(
    findUnexportedFailover(recordOf(900)),
    /failover list is not exported to other sites: 900/,
  )
})
