import t from 'tap'
import { scanType } from '../../src/dns/iana/types.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { metadataNames } from '../../src/peering/old-metadata.ts'
import { type OldAnswers, type PeerRecord, readOldAnswers } from '../../src/peering/read-v1.ts'
import { composeStrings, scanTarget } from '../../src/records/validate/target.ts'
import { peerTextOf, targetsOf } from '../support/peer-text.ts'
import { shared } from './samples.ts'

function txt(...strings: string[]): Uint8Array {
  return composeStrings(strings.map((s) => Buffer.from(s, 'latin1'))) as Uint8Array
}

/** `owner ttl TYPE target`. */
function record(line: string): PeerRecord {
  const [owner, ttl, type, target] = line.split(' ') as [string, string, string, string]
  const rdata = scanTarget(scanType(type)!, target)
  if (typeof rdata === 'string') throw new Error(rdata)
  return { owner: scanName(`${owner}.`)!, type: scanType(type)!, ttlSeconds: Number(ttl), rdata }
}

function answers(given: {
  records: readonly string[]
  weights?: readonly string[]
  geos?: readonly (readonly string[])[]
}): OldAnswers {
  return {
    records: given.records.map(record),
    weights: (given.weights ?? []).map((line) => txt(line)),
    geos: (given.geos ?? []).map((lines) => txt(...lines)),
  }
}

const PEER = '192.0.2.53:53'
const read = (given: OldAnswers, rootHost = 'k.example.com') =>
  readOldAnswers(given, { peer: PEER, rootHost, seenMs: 5 })

const CHAIN = [
  'k.example.com.kdrnt 300 CNAME lb.k.example.com.kdrnt',
  'lb.k.example.com.kdrnt 300 CNAME geo-eu.lb.k.example.com.kdrnt',
  'geo-eu.lb.k.example.com.kdrnt 60 CNAME c1.lb.k.example.com.kdrnt',
  'c1.lb.k.example.com.kdrnt 60 A 192.0.2.1',
  'c1.lb.k.example.com.kdrnt 60 A 192.0.2.2',
  'c1.lb.k.example.com.kdrnt 60 AAAA 2001:db8::1',
]

t.test('a chain with its weight and geo code becomes endpoints', async (t) => {
  const { siteState: share, problems } = read(
    answers({
      records: CHAIN,
      weights: ['100,geo-eu.lb.k.example.com.kdrnt'],
      geos: [['geo=GEO-EU', 'type=continent', 'default=false']],
    }),
  )
  t.strictSame(problems, [])
  t.match(share, { site: PEER, rootHost: 'k.example.com', seenMs: 5, generation: 'v1' })
  const of = { site: PEER, recordType: 'CNAME', ttlSeconds: 300 } as const
  t.strictSame(
    share.endpoints,
    [
      { ...of, targets: ['lb.k.example.com'] },
      {
        ...of,
        dnsName: 'lb.k.example.com',
        setIdentifier: 'GEO-EU',
        geoCodes: ['GEO-EU'],
        targets: ['geo-eu.lb.k.example.com'],
      },
      {
        ...of,
        ttlSeconds: 60,
        dnsName: 'geo-eu.lb.k.example.com',
        setIdentifier: 'c1.lb.k.example.com',
        weight: 100,
        targets: ['c1.lb.k.example.com'],
      },
      { site: PEER, dnsName: 'c1.lb.k.example.com', targets: ['192.0.2.1', '192.0.2.2'] },
      { site: PEER, dnsName: 'c1.lb.k.example.com', recordType: 'AAAA', targets: ['2001:db8::1'] },
    ].map(shared),
  )
})

t.test('several geo codes and weights of one record survive', async (t) => {
  const { siteState: share, problems } = read(
    answers({
      records: [
        'k.example.com.kdrnt 300 CNAME de.k.example.com.kdrnt',
        'k.example.com.kdrnt 300 CNAME GEO-NA.k.example.com.kdrnt',
        'k.example.com.kdrnt 300 CNAME us-east.k.example.com.kdrnt',
        'de.k.example.com.kdrnt 60 CNAME lb1.example.net.kdrnt',
        'geo-na.k.example.com.kdrnt 60 CNAME lb2.example.net.kdrnt',
      ],
      weights: [
        '100,de.k.example.com.kdrnt',
        '200,geo-na.k.example.com.kdrnt',
        '50,GEO-NA.k.example.com.kdrnt',
      ],
      geos: [
        ['geo=US', 'type=', 'default=false'],
        ['geo=DE', 'type=', 'default=false'],
        ['geo=GEO-NA', 'type=continent', 'default=true'],
      ],
    }),
  )
  t.strictSame(problems, [])
  t.strictSame(
    share.endpoints
      .map(peerTextOf)
      .map((e) => [e.targets[0], e.geoCodes.join(), e.isDefault, e.setIdentifier, e.weight]),
    [
      ['de.k.example.com', 'DE', false, 'DE', undefined],
      ['geo-na.k.example.com', 'GEO-NA', true, 'default', undefined],
      ['us-east.k.example.com', 'US', false, 'US', undefined],
      ['lb1.example.net', '', false, 'lb1.example.net', 100],
      ['lb2.example.net', '', false, 'lb2.example.net', 50],
    ],
  )
})

t.test('a wildcard host keeps its metadata', async (t) => {
  t.strictSame(metadataNames('w', '*.k.example.com'), [
    'w.k.example.com.kdrnt',
    'w.wildcard.k.example.com.kdrnt',
    'w.wildcardk.example.com.kdrnt',
  ])
  t.strictSame(metadataNames('g', 'k.example.com'), ['g.k.example.com.kdrnt'])
  const { siteState: share, problems } = read(
    answers({
      records: ['*.k.example.com.kdrnt 60 CNAME ie.k.example.com.kdrnt'],
      weights: ['7,*.k.example.com.kdrnt'],
      geos: [['geo=IE', 'type=', 'default=false']],
    }),
    '*.k.example.com',
  )
  t.strictSame(problems, [])
  t.match(share.endpoints.map(peerTextOf), [
    { rootHost: '*.k.example.com', dnsName: '*.k.example.com', weight: 7, geoCodes: ['IE'] },
  ])
})

t.test('a weight of addresses is theirs', async (t) => {
  const { siteState: share } = read(
    answers({
      records: ['k.example.com.kdrnt 60 A 192.0.2.1'],
      weights: ['0,k.example.com.kdrnt'],
    }),
  )
  t.match(share.endpoints.map(peerTextOf), [{ weight: 0, setIdentifier: '' }])
})

t.test('no answers are a share without endpoints', async (t) => {
  t.strictSame(read(answers({ records: [] })).siteState.endpoints, [])
})

const FAULTS: readonly { name: string; given: OldAnswers; want: readonly RegExp[] }[] = [
  {
    name: 'a geo record of two strings',
    given: answers({ records: [], geos: [['geo=GEO-EU', 'default=true']] }),
    want: [/^expected 3 lines in the geo txt record but got 2$/],
  },
  {
    name: 'a code that is none, with an escape sequence',
    given: answers({ records: [], geos: [['geo=\u001b[2J', 'type=', 'default=true']] }),
    want: [/unexpected geo code "\\u001b\[2J" in the geo txt record/],
  },
  {
    name: 'a weight without a name',
    given: answers({ records: [], weights: ['100'] }),
    want: [/expected a weight and a name but got "100"/],
  },
  {
    name: 'a weight that is none',
    given: answers({
      records: [],
      weights: ['-1,k.example.com.kdrnt', '1000001,k.example.com.kdrnt'],
    }),
    want: [/invalid weight: .*"-1"/, /invalid weight: .*"1000001"/],
  },
  {
    name: 'a name of another host',
    given: answers({ records: ['www.example.net.kdrnt 60 A 192.0.2.1'] }),
    want: [/invalid endpoint discovered www.example.net/],
  },
]

t.test('an invalid record affects only itself', async (t) => {
  for (const { name, given, want } of FAULTS) {
    const records = [...given.records, record('k.example.com.kdrnt 60 A 192.0.2.9')]
    const { siteState: share, problems } = read({ ...given, records })
    t.equal(problems.length, want.length, name)
    for (const [i, pattern] of want.entries()) {
      t.match(problems[i]?.replace('k.example.com: ', ''), pattern, name)
    }
    t.strictSame(targetsOf(share.endpoints), ['192.0.2.9'], name)
  }
})

t.test('names and rdata that no record may have are passed over or refused', async (t) => {
  const bell = scanName('a\\007b.k.example.com.kdrnt.')!
  const records: PeerRecord[] = [
    { owner: bell, type: 1, ttlSeconds: 60, rdata: Uint8Array.of(192, 0, 2, 1) },
    { owner: scanName('k.example.com.kdrnt.')!, type: 1, ttlSeconds: 60, rdata: Uint8Array.of(1) },
    {
      owner: scanName('k.example.com.')!,
      type: 1,
      ttlSeconds: 60,
      rdata: Uint8Array.of(1, 2, 3, 4),
    },
    { owner: scanName('k.example.com.kdrnt.')!, type: 16, ttlSeconds: 60, rdata: txt('x') },
  ]
  const { siteState: share, problems } = read({ records, weights: [], geos: [] })
  t.strictSame(share.endpoints, [])
  t.strictSame(problems, ['k.example.com: dnsName "a\\u0007b.k.example.com" is not a domain name'])
})

t.test('records above the limit are reported', (t) => {
  const records = Array.from({ length: 1002 }, (_, i) => `n${i}.k.example.com.kdrnt 60 A 192.0.2.1`)
  const { siteState, problems } = read(answers({ records }))
  t.equal(siteState.endpoints.length, 1000)
  t.strictSame(problems, ['k.example.com: 1002 records, only 1000 are accepted'])
  t.end()
})
