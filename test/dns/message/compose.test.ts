import fc from 'fast-check'
import t from 'tap'
import { compose, uncompressedOctets } from '../../../src/dns/message/compose.ts'
import type { Response } from '../../../src/dns/message/response.ts'
import type { Section } from '../../../src/dns/message/section.ts'
import { readMessage, wireName } from '../../support/wire.ts'
import { ask, send } from './compose-stage.ts'

interface Spec {
  readonly section: Section
  readonly name: string
  readonly type: number
  readonly rdata: Uint8Array
  readonly ttl?: number
}

function add(response: Response, { section, name, type, rdata, ttl = 300 }: Spec): void {
  // Offsets that are not 0, and octets around, as in a zone image.
  const owner = Buffer.concat([Buffer.from('junk'), wireName(name), Buffer.from('junk')])
  const data = Buffer.concat([Buffer.from('junk!'), rdata, Buffer.from('junk')])
  response.add(section, owner, 4, type, 1, ttl, data, 5, rdata.length)
}

const v4 = (last: number): Uint8Array => Uint8Array.from([192, 0, 2, last])
const TC = 0x0200

t.test('header flags', async (t) => {
  const table: { name: string; query: number; set: Partial<Response>; want: number }[] = [
    { name: 'RD and CD are copied', query: 0x0110, set: {}, want: 0x8110 },
    { name: 'AD and Z of the query are not', query: 0x0060, set: {}, want: 0x8000 },
    { name: 'AA', query: 0, set: { authoritative: true }, want: 0x8400 },
    { name: 'TC', query: 0, set: { truncated: true }, want: 0x8200 },
    { name: 'RA', query: 0, set: { recursionAvailable: true }, want: 0x8080 },
    { name: 'AD', query: 0, set: { authenticData: true }, want: 0x8020 },
    { name: 'NXDOMAIN', query: 0, set: { rcode: 3 }, want: 0x8003 },
    {
      name: 'an extended rcode without EDNS is SERVFAIL',
      query: 0,
      set: { rcode: 16 },
      want: 0x8002,
    },
  ]
  for (const { name, query: flags, set, want } of table) {
    const { query, response } = ask({ name: 'a', flags })
    Object.assign(response, set)
    t.equal(send(query, response).message.flags, want, name)
  }
})

t.test('the opcode is kept and no question is made up', async (t) => {
  const { query, response } = ask({ name: 'a', flags: 0x2900 })
  response.rcode = 4
  const { message, bytes } = send(query, response)
  t.equal(message.flags, 0xa804)
  t.equal(bytes.length, 12)
})

t.test('the question comes back in its own case and the owner points to it', async (t) => {
  const { query, response } = ask({ name: 'WwW.eXample.org' })
  response.add(0, query.qname, 0, 1, 1, 60, v4(1), 0, 4)
  const { bytes, message } = send(query, response)
  t.equal(message.questions[0]?.name, 'WwW.eXample.org.')
  t.strictSame([...bytes.subarray(33)], [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1])
  t.equal(message.answer[0]?.name, 'WwW.eXample.org.')
})

t.test('an owner inside qname points into the question', async (t) => {
  const { query, response } = ask({ name: 'www.example.org' })
  response.add(1, query.qname, 4, 2, 1, 60, wireName('ns.example.org'), 0, 16)
  const { bytes, message } = send(query, response)
  t.equal(message.authority[0]?.name, 'example.org.')
  t.strictSame(message.authority[0]?.names, ['ns.example.org.'])
  t.equal(bytes.length, 12 + 21 + 2 + 10 + 3 + 2)
})

t.test('names in rdata are compressed for the types of RFC 1035 only', async (t) => {
  const target = wireName('target.example.org')
  const soa = Buffer.concat([
    wireName('ns.example.org'),
    wireName('mail.example.org'),
    Buffer.alloc(20, 7),
  ])
  const table: { name: string; type: number; rdata: Uint8Array; octets: number }[] = [
    { name: 'NS', type: 2, rdata: target, octets: 9 },
    { name: 'CNAME', type: 5, rdata: target, octets: 9 },
    { name: 'PTR', type: 12, rdata: target, octets: 9 },
    { name: 'MX', type: 15, rdata: Buffer.concat([Buffer.from([0, 10]), target]), octets: 11 },
    { name: 'SOA', type: 6, rdata: soa, octets: 5 + 7 + 20 },
    { name: 'SRV', type: 33, rdata: Buffer.concat([Buffer.alloc(6), target]), octets: 26 },
    { name: 'DNAME', type: 39, rdata: target, octets: 20 },
    { name: 'an unknown type', type: 65280, rdata: target, octets: 20 },
  ]
  for (const { name, type, rdata, octets } of table) {
    const { query, response } = ask({ name: 'www.example.org', type })
    add(response, { section: 0, name: 'www.example.org', type, rdata })
    const { message } = send(query, response)
    t.equal(message.answer[0]?.rdata.length, octets, name)
    t.equal(uncompressedOctets(query, response), 12 + 21 + 17 + 10 + rdata.length)
  }
})

t.test('records go out by section, in order within each', async (t) => {
  const { query, response } = ask({ name: 'www.example.org' })
  add(response, { section: 2, name: 'c.example.org', type: 1, rdata: v4(3) })
  add(response, { section: 0, name: 'a.example.org', type: 1, rdata: v4(1), ttl: 0x7fffffff })
  add(response, { section: 1, name: 'b.example.org', type: 1, rdata: v4(2) })
  add(response, { section: 0, name: '.', type: 1, rdata: v4(4) })
  const { message } = send(query, response)
  t.strictSame(
    message.answer.map((r) => [r.name, r.ttl, r.rdata[3]]),
    [
      ['a.example.org.', 0x7fffffff, 1],
      ['.', 300, 4],
    ],
  )
  t.equal(message.authority[0]?.name, 'b.example.org.')
  t.equal(message.additional[0]?.name, 'c.example.org.')
})

t.test('truncation', async (t) => {
  const fill = (section: Section, name: string, count: number, octets: number, type = 16): Spec[] =>
    Array.from({ length: count }, () => ({ section, name, type, rdata: new Uint8Array(octets) }))
  const ns = (count: number): Spec[] =>
    Array.from({ length: count }, (_, i) => ({
      section: 1,
      name: 'sub.example.org',
      type: 2,
      rdata: wireName(`ns${i}.sub.example.org`),
    }))
  const glue = (zone: string, count: number): Spec[] =>
    Array.from({ length: count }, (_, i) => ({
      section: 2,
      name: `ns${i}.${zone}`,
      type: 28,
      rdata: new Uint8Array(16),
    }))
  const signature = (name: string, covered: number): Spec => {
    return { section: 0, name, type: 46, rdata: Uint8Array.of(0, covered, ...new Uint8Array(80)) }
  }
  const table: {
    name: string
    records: Spec[]
    aa?: boolean
    limit?: number
    want: [answer: number, authority: number, additional: number, truncated: boolean]
  }[] = [
    { name: 'all fits', records: fill(0, 'www.example.org', 3, 100), want: [3, 0, 0, false] },
    {
      name: 'an RRset goes out whole or not at all',
      records: fill(0, 'www.example.org', 10, 100),
      want: [0, 0, 0, true],
    },
    {
      name: 'the RRset before it stays',
      records: [...fill(0, 'www.example.org', 2, 100), ...fill(0, 'www.example.org', 3, 100, 99)],
      want: [2, 0, 0, true],
    },
    {
      name: 'what follows a cut answer goes as well',
      records: [
        ...fill(0, 'www.example.org', 10, 100),
        ...fill(1, 'example.org', 1, 4),
        ...fill(2, 'x.example.org', 1, 4),
      ],
      want: [0, 0, 0, true],
    },
    {
      name: 'cut authority sets TC',
      records: [...fill(0, 'www.example.org', 1, 100), ...fill(1, 'example.org', 4, 100)],
      want: [1, 0, 0, true],
    },
    {
      name: 'cut additional data of an answer does not',
      records: [...fill(0, 'www.example.org', 1, 100), ...fill(2, 'x.example.org', 4, 100, 1)],
      want: [1, 0, 0, false],
    },
    {
      name: 'an RRset that is mixed with another takes it along',
      records: [
        ...fill(2, 'x.example.org', 1, 100, 1),
        ...[28, 1, 28, 1, 28].flatMap((type) => fill(2, 'y.example.org', 1, 80, type)),
      ],
      want: [0, 0, 1, false],
    },
    {
      name: 'an RRset whose signature comes later goes with it',
      records: [
        ...fill(0, 'www.example.org', 1, 10, 5),
        ...fill(0, 'x.example.org', 10, 100),
        ...[5, 16].map((covered) => signature('www.example.org', covered)),
      ],
      want: [0, 0, 0, true],
    },
    {
      name: 'an RRset whose signature comes earlier stays',
      records: [
        ...fill(0, 'www.example.org', 1, 10, 5),
        signature('www.example.org', 5),
        ...fill(0, 'x.example.org', 10, 100),
        signature('x.example.org', 16),
      ],
      want: [2, 0, 0, true],
    },
    {
      name: 'a referral that fits',
      records: [...ns(4), ...glue('sub.example.org', 4)],
      aa: false,
      want: [0, 4, 4, false],
    },
    {
      name: 'lost glue below the cut sets TC',
      records: [...ns(4), ...glue('sub.example.org', 20)],
      aa: false,
      want: [0, 4, 13, true],
    },
    {
      name: 'lost glue of a sibling does not',
      records: [...ns(4), ...glue('other.example.org', 20)],
      aa: false,
      want: [0, 4, 12, false],
    },
    {
      name: 'glue below the cut that comes after what did not fit counts too',
      records: [...ns(4), ...glue('other.example.org', 20), ...glue('sub.example.org', 1)],
      aa: false,
      want: [0, 4, 12, true],
    },
    {
      name: 'an NS set of our own apex makes no referral',
      records: [...ns(4), ...glue('sub.example.org', 20)],
      aa: true,
      want: [0, 4, 13, false],
    },
    {
      name: 'more room, nothing cut',
      records: fill(0, 'www.example.org', 10, 100),
      limit: 1232,
      want: [10, 0, 0, false],
    },
    {
      name: 'TCP',
      records: fill(0, 'www.example.org', 500, 100),
      limit: 65535,
      want: [500, 0, 0, false],
    },
    {
      name: 'TCP has its limit too',
      records: fill(0, 'www.example.org', 600, 100),
      limit: 65535,
      want: [0, 0, 0, true],
    },
  ]
  for (const { name, records, aa = true, limit = 512, want } of table) {
    const { query, response } = ask({ name: 'www.example.org' })
    response.authoritative = aa
    for (const record of records) add(response, record)
    const { message } = send(query, response, limit)
    const got = [
      message.answer.length,
      message.authority.length,
      message.additional.length,
      (message.flags & TC) !== 0,
    ]
    t.strictSame(got, want, name)
  }
})

t.test('OPT survives truncation and its room is set aside', async (t) => {
  const options: [number, Uint8Array][] = [[8, Uint8Array.from([0, 1, 24, 0, 192, 0, 2])]]
  const { query, response } = ask({ name: 'www.example.org', edns: { options } })
  const room = 512 - 33 - 22 - 12
  add(response, { section: 0, name: 'www.example.org', type: 16, rdata: new Uint8Array(room) })
  t.equal(send(query, response, 512).bytes.length, 512, 'it just fits')
  response.reset(query)
  add(response, { section: 0, name: 'www.example.org', type: 16, rdata: new Uint8Array(room + 1) })
  const { message } = send(query, response, 512)
  t.equal(message.answer.length, 0)
  t.equal(message.options.get(8)?.length, 7)
})

t.test('NSID and EDE give way to records', async (t) => {
  const { query, response } = ask({
    name: 'www.example.org',
    edns: { options: [[3, new Uint8Array(0)]] },
  })
  const room = 512 - 33 - 11 - 12
  const fill = (octets: number): void => {
    response.reset(query)
    response.nsid = new Uint8Array(8)
    response.edeCode = 3
    response.edeText = new Uint8Array(5)
    add(response, { section: 0, name: 'www.example.org', type: 16, rdata: new Uint8Array(octets) })
  }
  const table = [
    { name: 'no room', octets: room, want: [] },
    { name: 'room for NSID only', octets: room - 12 - 5, want: [3] },
    { name: 'room for EDE without text', octets: room - 12 - 6, want: [3, 15] },
    { name: 'room for EDE alone', octets: room - 6, want: [15] },
    { name: 'room for all', octets: room - 12 - 11, want: [3, 15] },
  ]
  for (const { name, octets, want } of table) {
    fill(octets)
    const { message } = send(query, response, 512)
    t.equal(message.answer.length, 1, name)
    t.strictSame([...message.options.keys()], want, name)
  }
})

t.test('a name behind octet 16383 is written whole', async (t) => {
  const { query, response } = ask({ name: 'www.example.org' })
  add(response, { section: 0, name: 'example.org', type: 16, rdata: new Uint8Array(17000) })
  for (const i of [1, 2, 3])
    add(response, { section: 0, name: 'far.example.net', type: 1, rdata: v4(i) })
  const { message } = send(query, response)
  t.strictSame(
    message.answer.map((record) => record.name),
    ['example.org.', ...new Array(3).fill('far.example.net.')],
  )
})

t.test('more records than a fresh response has room for', async (t) => {
  const { query, response } = ask({ name: 'www.example.org' })
  for (let i = 0; i < 3000; i++) response.add(0, query.qname, 0, 1, 1, 60, v4(i & 255), 0, 4)
  t.equal(send(query, response).message.answer.length, 3000)
  for (let i = 3000; i < 7000; i++) response.add(0, query.qname, 0, 1, 1, 60, v4(i & 255), 0, 4)
  t.equal(response.count, 6000)
  t.equal(response.truncated, true)
})

const label = fc.stringMatching(/^[a-cA-C]{1,3}$/)
const name = fc.array(label, { maxLength: 5 }).map((labels) => `${labels.join('.')}.`)

t.test('reading gives back the names that were written', async () => {
  const record = fc.record({
    section: fc.constantFrom<Section>(0, 1, 2),
    owner: name,
    type: fc.constantFrom(1, 2, 5, 12, 15, 6, 16),
    target: name,
  })
  fc.assert(
    fc.property(name, fc.array(record, { maxLength: 60 }), (qname, records) => {
      const { query, response } = ask({ name: qname })
      for (const { section, owner, type, target } of records) {
        add(response, { section, name: owner, type, rdata: rdataOf(type, target) })
      }
      const out = new Uint8Array(65535)
      const message = readMessage(out.subarray(0, compose(query, response, out, 65535)))
      const got = [...message.answer, ...message.authority, ...message.additional]
      const want = [0, 1, 2].flatMap((section) => records.filter((r) => r.section === section))
      if (got.length !== want.length) return false
      return got.every((record, i) => {
        const { owner, type, target } = want[i]!
        const names = [2, 5, 12, 15].includes(type) ? [target] : type === 6 ? [target, target] : []
        const lower = (texts: readonly string[]): string => texts.join(' ').toLowerCase()
        return lower([record.name, ...record.names]) === lower([owner, ...names])
      })
    }),
    { seed: 11, numRuns: 1500 },
  )
})

t.test('a reply cut anywhere is still a message', async (t) => {
  const { query, response } = ask({ name: 'a.b.c', edns: {} })
  for (let i = 0; i < 40; i++) {
    const section: Section = i < 15 ? 0 : i < 30 ? 1 : 2
    add(response, {
      section,
      name: `n${i >> 1}.b.c`,
      type: i % 3 === 0 ? 2 : 16,
      rdata: wireName(`t${i}.b.c`),
    })
  }
  const out = new Uint8Array(65535)
  for (let limit = 512; limit < 1300; limit++) {
    response.truncated = false
    const octets = compose(query, response, out, limit)
    if (octets > limit) t.fail(`limit ${limit}`)
    readMessage(out.subarray(0, octets))
  }
})

function rdataOf(type: number, target: string): Uint8Array {
  const wire = wireName(target)
  if (type === 15) return Buffer.concat([Buffer.from([0, 1]), wire])
  if (type === 6) return Buffer.concat([wire, wire, Buffer.alloc(20)])
  if (type === 1) return v4(1)
  return wire
}
