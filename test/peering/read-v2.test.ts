import t from 'tap'
import { readV2Host } from '../../src/peering/read-v2.ts'
import { composePeerEndpoint } from '../../src/peering/v2-codec.ts'
import { targetsOf } from '../support/peer-text.ts'
import { HOST, shared } from './samples.ts'

const EXPORTER = '192.0.2.53:53'
const place = { host: HOST, seenMs: 5, exporter: EXPORTER }

t.test('endpoints are collected by site and host', async (t) => {
  const exported = [
    shared({ site: 'b' }),
    shared({ site: 'a', dnsName: `x.${HOST}` }),
    shared({ site: 'a', rootHost: `*.${HOST}`, dnsName: `*.${HOST}` }),
    shared({ site: 'a' }),
  ]
  const { siteStates: shares, problems } = readV2Host(
    exported.map((e) => composePeerEndpoint(e)!),
    place,
  )
  t.strictSame(problems, [])
  const from = { exporter: EXPORTER, isOwn: false }
  const of = { seenMs: 5, generation: 'v2' } as const
  t.strictSame(shares, [
    { site: 'a', ...from, rootHost: `*.${HOST}`, endpoints: [exported[2]!], ...of },
    { site: 'a', ...from, rootHost: HOST, endpoints: [exported[3]!, exported[1]!], ...of },
    { site: 'b', ...from, rootHost: HOST, endpoints: [exported[0]!], ...of },
  ])
})

t.test('a bad endpoint is refused alone', async (t) => {
  const other = shared({ rootHost: 'k.example.net', dnsName: 'k.example.net' })
  const records = [Uint8Array.of(0), composePeerEndpoint(other)!, composePeerEndpoint(shared())!]
  const { siteStates: shares, problems } = readV2Host(records, place)
  t.strictSame(problems, [
    'k.example.com: the first string does not say v=2',
    'k.example.com: an endpoint of k.example.net does not belong to this host',
  ])
  t.equal(shares[0]!.endpoints.length, 1)
})

t.test('endpoints over the limits are left out, in any order', async (t) => {
  const records = Array.from(
    { length: 1100 },
    (_, i) => composePeerEndpoint(shared({ targets: [`10.0.${i >> 8}.${i & 255}`] }))!,
  )
  const got = readV2Host(records, place)
  t.equal(got.siteStates[0]!.endpoints.length, 1000)
  t.strictSame(got.problems, ['k.example.com: 1100 endpoints, only 1000 are accepted'])
  t.strictSame(
    readV2Host([...records].reverse(), { ...place, room: 3 }).siteStates,
    readV2Host(records, { ...place, room: 3 }).siteStates,
  )
  t.equal(readV2Host(records, { ...place, room: 3 }).siteStates[0]!.endpoints.length, 3)
  t.strictSame(readV2Host(records, { ...place, room: 0 }).siteStates, [])
})

t.test('a peer speaks for sixteen sites at most, and its faults do not flood', async (t) => {
  const records = Array.from(
    { length: 40 },
    (_, i) => composePeerEndpoint(shared({ site: `s${i}` }))!,
  )
  const { siteStates: shares, problems } = readV2Host(records, place)
  t.equal(shares.length, 16)
  t.equal(problems.length, 11)
  t.equal(problems[10], 'k.example.com: and 14 more')
})

t.test(
  'a bad setting is reported once for a host, after the endpoints that are refused',
  async (t) => {
    const good = Array.from({ length: 3 }, (_, i) => {
      return composePeerEndpoint(shared({ targets: [`192.0.2.${i}`], recordId: '01234567' }))!
    })
    const strings = ['sticky=maybe', `created=${8 * 24 * 3600}`].map((text) =>
      Buffer.concat([Uint8Array.of(text.length), Buffer.from(text)]),
    )
    const records = good.map((rdata) => Buffer.concat([rdata, ...strings]))
    const context = { ...place, nowSeconds: 5 * 24 * 3600 }
    const { siteStates, problems } = readV2Host([...records, Uint8Array.of(0)], context)
    t.strictSame(targetsOf(siteStates[0]!.endpoints), ['192.0.2.0', '192.0.2.1', '192.0.2.2'])
    t.match(siteStates[0]!.endpoints[0], { recordId: '01234567', createdSeconds: undefined })
    t.match(problems, [
      'k.example.com: the first string does not say v=2',
      /^k\.example\.com: site a: created "691200" is ignored: is more than a day after/,
      /^k\.example\.com: site a: sticky "maybe" is ignored: must be true, false or/,
    ])
    t.equal(problems.length, 3)
    const stranger = composePeerEndpoint(
      shared({ rootHost: 'k.example.net', dnsName: 'k.example.net' }),
    )!
    const { problems: others } = readV2Host([Buffer.concat([stranger, ...strings])], context)
    t.match(others, [/does not belong to this host/])
    t.equal(others.length, 1)
    t.equal(readV2Host(records, place).siteStates[0]!.endpoints[0]!.createdSeconds, 691_200)
  },
)
