import t from 'tap'
import { composeServed } from '../../../src/operator/plan/served-endpoints.ts'
import { RecordSet } from '../../../src/peering/record-set.ts'
import { buildSiteRecords } from '../../../src/peering/site-records.ts'
import { SET_IDENTIFIER_CHARACTERS_MAX, TARGETS_MAX } from '../../../src/records/dns-record.ts'
import type { EndpointObject } from '../../../src/records/print-endpoint.ts'
import { dnsRecord } from '../../peering/records.ts'
import { peerEndpoint } from '../../support/operator-cluster.ts'
import { type PeerText, peerTextOf } from '../../support/peer-text.ts'

const HOST = 'k.example.com'
const A = { dnsName: HOST, recordType: 'A', recordTTL: 60 }
const WEIGHTED = { providerSpecific: [{ name: 'weight', value: '1' }] }
const LONG = 'x'.repeat(SET_IDENTIFIER_CHARACTERS_MAX)

interface Given {
  readonly own: readonly (Pick<EndpointObject, 'targets'> & Partial<EndpointObject>)[]
  readonly theirs: readonly Partial<PeerText>[]
  readonly down?: readonly string[]
  readonly foreignDown?: readonly string[]
}

/** `setIdentifier: targets ttl health` of each endpoint. */
function served({ own, theirs, down = [], foreignDown = [] }: Given): string[] {
  const reported = theirs.map((one) => peerEndpoint({ site: 'east', ...one }))
  const foreign = buildSiteRecords(HOST, reported, '', RecordSet.EMPTY)
  const endpoints = own.map((one) => ({ ...A, ...one }))
  const content = dnsRecord({ rootHost: HOST, endpoints, created: '2026-01-01T00:00:00Z' })
  const out = { down, foreignDown: new Set(foreignDown), drain: undefined }
  const state = { site: 'here', foreign, ...out, timeMs: 1000 }
  const found = composeServed({ record: { key: 'n/r' }, content, rootHost: HOST }, state)
  return found.map(peerTextOf).map(({ setIdentifier, targets, ttlSeconds, health }) => {
    const id = setIdentifier.replace(/x{9,}/, (text) => `x*${text.length}`)
    return `${id}: ${targets} ${ttlSeconds} ${health}`
  })
}

t.test('the endpoints of all sites, for programs that know no health', async (t) => {
  const [one, two] = [['192.0.2.1'], ['192.0.2.2']]
  const table: readonly (Given & { readonly name: string; readonly want: readonly string[] })[] = [
    {
      name: 'what has no identifier is one endpoint',
      own: [{ targets: one }],
      theirs: [{ targets: two }],
      want: [': 192.0.2.1,192.0.2.2 60 unknown'],
    },
    {
      name: 'the lowest TTL counts',
      own: [{ targets: one }],
      theirs: [{ targets: two, ttlSeconds: 30 }],
      want: [': 192.0.2.1,192.0.2.2 30 unknown'],
    },
    {
      name: 'a target that is down is left out',
      own: [{ targets: one }],
      theirs: [{ targets: two }],
      foreignDown: two,
      want: [': 192.0.2.1 60 unknown'],
    },
    {
      name: 'unless none is left',
      own: [{ targets: one }],
      theirs: [{ targets: two }],
      down: one,
      foreignDown: two,
      want: [': 192.0.2.1,192.0.2.2 60 down'],
    },
    {
      name: 'a drained one too, until the drain ends',
      own: [{ targets: one }],
      theirs: [
        { targets: two, settings: { drain: { reason: '' } } },
        { targets: ['192.0.2.3'], settings: { drain: { reason: '', untilMs: 1000 } } },
      ],
      want: [': 192.0.2.1,192.0.2.3 60 unknown'],
    },
    {
      name: 'an identifier of two sites gets another form',
      own: [
        { targets: one, setIdentifier: 'x' },
        { targets: ['192.0.2.3'], setIdentifier: 'x-east' },
      ],
      theirs: [{ targets: two, setIdentifier: 'x' }],
      want: [
        'x: 192.0.2.1 60 unknown',
        'x-east: 192.0.2.3 60 unknown',
        'x-east-2: 192.0.2.2 60 unknown',
      ],
    },
    {
      name: 'a CNAME to a name where nothing of another site works is left out',
      own: [
        { recordType: 'CNAME', targets: [`a.${HOST}`], setIdentifier: 'a', ...WEIGHTED },
        { recordType: 'CNAME', targets: [`b.${HOST}`], setIdentifier: 'b', ...WEIGHTED },
      ],
      theirs: [
        { dnsName: `a.${HOST}`, targets: one },
        { dnsName: `b.${HOST}`, targets: two },
      ],
      foreignDown: one,
      want: [': 192.0.2.1 60 down', ': 192.0.2.2 60 unknown', `b: b.${HOST} 60 unknown`],
    },
    {
      name: 'and is not too long then',
      own: [{ targets: one, setIdentifier: LONG }],
      theirs: [{ targets: two, setIdentifier: LONG }],
      want: ['x*1019-east: 192.0.2.2 60 unknown', 'x*1024: 192.0.2.1 60 unknown'],
    },
  ]
  for (const { name, want, ...given } of table) t.strictSame(served(given), want, name)
})

t.test('more targets than fit into one endpoint', async (t) => {
  const targets = Array.from({ length: TARGETS_MAX }, (_, i) => `192.0.2.${i}`)
  const found = served({ own: [{ targets }], theirs: [{ targets: ['198.51.100.1'] }] })
  t.equal(found.length, 2)
  t.equal(found.join().match(/\d+\.\d+\.\d+\.\d+/g)!.length, TARGETS_MAX + 1)
})
