import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { RRType } from '../../src/dns/iana/types.ts'
import { Response } from '../../src/dns/message/response.ts'
import { ImageSink } from '../../src/publish/zone/image-sink.ts'
import { SteeringTable } from '../../src/steering/table.ts'
import { ZoneImage } from '../../src/zone/image/writer.ts'
import { ZoneAnswerer } from '../../src/zone/lookup/answer.ts'
import { question, wire } from '../support/zone-names.ts'
import { APEX, added, type Given, zone } from './record-zone-stage.ts'

const STICKY = { annotations: { 'sextant.io/sticky': 'true' } }

/** Returns a function that answers from a zone with these records: the last octet of the address. */
function serve(...givens: Given[]) {
  const image = new ZoneImage()
  const id = image.addZone(APEX)
  const table = new SteeringTable({
    locator: undefined,
    random: new Random(1),
    onError: (reason) => t.fail(reason),
  })
  const { records, sink, conflicts } = zone()
  records.apply(added(...givens))
  const images = new ImageSink(image, id, table)
  for (const [key, set] of sink.sets) images.put(wire(key.split(' ')[0]!), set)
  image.publish()
  const answerer = new ZoneAnswerer(image.reader(), table.steerer())
  const ask = (name: string, type: number, client: readonly number[]): number => {
    const query = question(name, type)
    query.clientAddress.set(client)
    query.clientFamily = client.length === 4 ? 1 : 2
    query.clientBits = client.length * 8
    const response = new Response()
    response.reset(query)
    answerer.answer(query, response, 0)
    const last = response.count - 1
    return response.rdataBytes[last]![
      response.rdataOffset[last]! + response.rdataOctets[last]! - 1
    ]!
  }
  return { ask, sink, conflicts }
}

const sites = (owner: string) =>
  [1, 2, 3].flatMap((i) => [
    `${owner} A 192.0.2.${i} id=s${i} weight=${i * 10}`,
    `${owner} AAAA 2001:db8::${i} id=s${i} weight=${i * 10}`,
  ])

t.test('A and AAAA name the same site for 10 000 of 10 000 clients', async (t) => {
  const chain = ['x.k.example.com CNAME a.k.example.com id=1 weight=1']
  chain.push('x.k.example.com CNAME b.k.example.com id=2 weight=3', ...sites('a.k.example.com'))
  chain.push(...sites('b.k.example.com').map((text) => text.replace(/([:.])(\d) id/, '$11$2 id')))
  const { ask } = serve({ endpoints: chain, ...STICKY })
  const random = new Random(3)
  const seen = new Set<number>()
  for (let i = 0; i < 10_000; i++) {
    const client = Array.from({ length: i % 2 === 0 ? 4 : 16 }, () => random.below(256))
    const a = ask('x.k.example.com.', RRType.A, client)
    // 192.0.2.11 and 2001:db8::11 are written alike, but not the same octet.
    const aaaa = ask('x.k.example.com.', RRType.AAAA, client)
    const site = a > 10 ? a - 10 + 0x10 : a
    if (site !== aaaa) return t.fail(`${client}: ${a} and ${aaaa.toString(16)}`)
    if (ask('x.k.example.com.', RRType.A, client) !== a) return t.fail(`${client}: not the same`)
    seen.add(a)
  }
  t.equal(seen.size, 6, 'every site of both names is used')
})

t.test('without set identifiers the choice is sticky by content', async (t) => {
  const endpoints = [1, 2, 3].map((i) => `x.k.example.com A 192.0.2.${i} weight=1`)
  const [one, other] = [
    serve({ endpoints, ...STICKY }),
    serve({ endpoints: endpoints.reverse(), ...STICKY }),
  ]
  const seen = new Set<number>()
  for (let i = 0; i < 200; i++) {
    const client = [10, i, 0, 0]
    const got = one.ask('x.k.example.com.', RRType.A, client)
    t.equal(other.ask('x.k.example.com.', RRType.A, client), got)
    seen.add(got)
  }
  t.equal(seen.size, 3)
})

t.test('the setting and the identifiers are part of the content', async (t) => {
  const endpoints = sites('x.k.example.com')
  const renamed = endpoints.map((text) => text.replace('id=s', 'id=t'))
  const digest = (given: Given): string => {
    const { records } = zone()
    records.apply(added(given))
    return records.digest
  }
  const digests = [
    digest({ endpoints }),
    digest({ endpoints, ...STICKY }),
    digest({ endpoints: renamed, ...STICKY }),
    digest({ endpoints, annotations: { 'sextant.io/sticky': '24 48' } }),
  ]
  t.equal(new Set(digests).size, digests.length)
  t.equal(digest({ endpoints: renamed }), digests[0], 'only where the choice is sticky')
  t.equal(digest({ endpoints, annotations: { 'sextant.io/sticky': 'false' } }), digests[0])
})
