import t from 'tap'
import { readTold } from '../../src/peering/read-told.ts'
import { composePeerEndpoint } from '../../src/peering/v2-codec.ts'
import { HOST, shared } from './samples.ts'

const TELLER = '192.0.2.53:53'
const place = { host: HOST, seenMs: 5, teller: TELLER }

t.test('endpoints are collected by site and host', async (t) => {
  const told = [
    shared({ site: 'b' }),
    shared({ site: 'a', dnsName: `x.${HOST}` }),
    shared({ site: 'a', rootHost: `*.${HOST}`, dnsName: `*.${HOST}` }),
    shared({ site: 'a' }),
  ]
  const { siteStates: shares, problems } = readTold(
    told.map((e) => composePeerEndpoint(e)!),
    place,
  )
  t.strictSame(problems, [])
  const from = { teller: TELLER, isOwn: false }
  const of = { seenMs: 5, generation: 'v2' } as const
  t.strictSame(shares, [
    { site: 'a', ...from, rootHost: `*.${HOST}`, endpoints: [told[2]!], ...of },
    { site: 'a', ...from, rootHost: HOST, endpoints: [told[3]!, told[1]!], ...of },
    { site: 'b', ...from, rootHost: HOST, endpoints: [told[0]!], ...of },
  ])
})

t.test('a bad endpoint is refused alone', async (t) => {
  const other = shared({ rootHost: 'k.example.net', dnsName: 'k.example.net' })
  const records = [Uint8Array.of(0), composePeerEndpoint(other)!, composePeerEndpoint(shared())!]
  const { siteStates: shares, problems } = readTold(records, place)
  t.strictSame(problems, [
    'k.example.com: the first string does not say v=2',
    'k.example.com: an endpoint of k.example.net does not belong there',
  ])
  t.equal(shares[0]!.endpoints.length, 1)
})

t.test('what is beyond the bounds is left out, whatever the order', async (t) => {
  const records = Array.from(
    { length: 1100 },
    (_, i) => composePeerEndpoint(shared({ targets: [`10.0.${i >> 8}.${i & 255}`] }))!,
  )
  const got = readTold(records, place)
  t.equal(got.siteStates[0]!.endpoints.length, 1000)
  t.strictSame(got.problems, ['k.example.com: 1100 endpoints, only 1000 are taken'])
  t.strictSame(
    readTold([...records].reverse(), { ...place, room: 3 }).siteStates,
    readTold(records, { ...place, room: 3 }).siteStates,
  )
  t.equal(readTold(records, { ...place, room: 3 }).siteStates[0]!.endpoints.length, 3)
  t.strictSame(readTold(records, { ...place, room: 0 }).siteStates, [])
})

t.test('a peer speaks for sixteen sites at most, and its faults do not flood', async (t) => {
  const records = Array.from(
    { length: 40 },
    (_, i) => composePeerEndpoint(shared({ site: `s${i}` }))!,
  )
  const { siteStates: shares, problems } = readTold(records, place)
  t.equal(shares.length, 16)
  t.equal(problems.length, 11)
  t.equal(problems[10], 'k.example.com: and 14 more')
})
