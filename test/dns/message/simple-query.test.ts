import fc from 'fast-check'
import t from 'tap'
import { packetOctets } from '../../../src/base/packet-memory.ts'
import { parseQuery } from '../../../src/dns/message/parse-query.ts'
import { ParseStatus, Query } from '../../../src/dns/message/query.ts'
import { parseSimpleQuery, simpleQuery } from '../../../src/dns/message/simple-query.ts'
import { arbitraryName } from '../../support/arbitrary.ts'
import { type QuerySpec, wireQuery } from '../../support/wire.ts'

const AT = 64

function isPlain(packet: Uint8Array): boolean {
  // What is behind a packet is of those before it.
  packetOctets.fill(0x41, AT, AT + 600)
  packetOctets.set(packet, AT)
  return parseSimpleQuery(AT, packet.length)
}

const ecs = (...octets: number[]) => [[8, Uint8Array.from(octets)] as const]

t.test('only the plainest queries are plain', async (t) => {
  const table: { name: string; given: QuerySpec; want: boolean }[] = [
    { name: 'a question alone', given: { name: 'www.example.org' }, want: true },
    { name: 'an EDNS without options', given: { name: 'a.example', edns: {} }, want: true },
    {
      name: 'a client subnet',
      given: { name: 'a', edns: { options: ecs(0, 1, 24, 0, 192, 0, 2) } },
      want: true,
    },
    {
      name: 'a client subnet of IPv6',
      given: { name: 'a', edns: { options: ecs(0, 2, 9, 0, 32, 0x80) } },
      want: true,
    },
    {
      name: 'a client subnet of no bits',
      given: { name: 'a', edns: { options: ecs(0, 1, 0, 0) } },
      want: false,
    },
    {
      name: 'bits behind the prefix',
      given: { name: 'a', edns: { options: ecs(0, 1, 23, 0, 192, 0, 1) } },
      want: false,
    },
    {
      name: 'a scope in a query',
      given: { name: 'a', edns: { options: ecs(0, 1, 8, 1, 192) } },
      want: false,
    },
    {
      name: 'a family that is none',
      given: { name: 'a', edns: { options: ecs(0, 3, 8, 0, 192) } },
      want: false,
    },
    {
      name: 'a cookie',
      given: { name: 'a', edns: { options: [[10, new Uint8Array(8)]] } },
      want: false,
    },
    { name: 'a version above 0', given: { name: 'a', edns: { version: 1 } }, want: false },
    { name: 'another class', given: { name: 'a', rrclass: 3 }, want: false },
    { name: 'a response', given: { name: 'a', flags: 0x8000 }, want: false },
    { name: 'a NOTIFY', given: { name: 'a', flags: 0x2000 }, want: false },
  ]
  for (const { name, given, want } of table) t.equal(isPlain(wireQuery(given)), want, name)
})

t.test('a packet that ends too early is not plain, wherever it ends', async (t) => {
  const packet = wireQuery({ name: 'www.example.org', edns: { options: ecs(0, 1, 8, 0, 192) } })
  for (let octets = 0; octets < packet.length; octets++) {
    t.equal(isPlain(packet.subarray(0, octets)), false, `${octets} octets`)
  }
})

t.test('what is plain is read as by parseQuery', async (t) => {
  const arbitrary = fc.record({
    name: arbitraryName,
    type: fc.nat(65535),
    hasEdns: fc.boolean(),
    payload: fc.nat(65535),
    dnssecOk: fc.boolean(),
    flipAt: fc.oneof({ weight: 3, arbitrary: fc.constant(-1) }, fc.nat(60)),
    flip: fc.integer({ min: 1, max: 255 }),
  })
  const seen = { plain: 0 }
  const property = fc.property(
    arbitrary,
    ({ hasEdns, payload, dnssecOk, flipAt, flip, ...spec }) => {
      const edns = { payload, flags: dnssecOk ? 0x8000 : 0, options: ecs(0, 1, 12, 0, 10, 16) }
      const packet = new Uint8Array(wireQuery(hasEdns ? { ...spec, edns } : spec))
      if (flipAt !== -1 && flipAt < packet.length) packet[flipAt]! ^= flip
      if (!isPlain(packet)) return
      seen.plain++
      const query = new Query()
      if (parseQuery(query, packet, packet.length) !== ParseStatus.Ok)
        throw new Error('parseQuery refuses it')
      t.match(simpleQuery, pick(query))
      t.same(
        simpleQuery.qname.slice(0, simpleQuery.qnameOctets),
        query.qname.slice(0, query.qnameOctets),
      )
      const labels = query.labelCount + 1
      t.same(simpleQuery.labelOffset.slice(0, labels), query.labelOffset.slice(0, labels))
      t.same(simpleQuery.suffixHash.slice(0, labels), query.suffixHash.slice(0, labels))
    },
  )
  fc.assert(property, { seed: 3, numRuns: 800 })
  t.ok(seen.plain > 300, `${seen.plain} were plain`)
})

function pick(query: Query): Partial<Record<keyof typeof simpleQuery, unknown>> {
  const { id, flags, qnameOctets, labelCount, qtype, hasEdns, payloadOctets, dnssecOk } = query
  const { packetOctets: octets, ecsFamily, ecsSourceBits } = query
  return {
    ...{ id, flags, qnameOctets, labelCount, qtype, hasEdns, payloadOctets, dnssecOk },
    ...{ packetOctets: octets, ecsFamily, ecsSourceBits },
  }
}
