import fc from 'fast-check'
import t from 'tap'
import { parseQuery } from '../../../src/dns/message/parse-query.ts'
import { ParseStatus, Query } from '../../../src/dns/message/query.ts'
import { NameBuffer } from '../../../src/dns/name/hashed-name.ts'
import { type QuerySpec, wireName, wireOpt, wireQuery } from '../../support/wire.ts'

function parse(packet: Uint8Array): { status: ParseStatus; query: Query } {
  const query = new Query()
  return { status: parseQuery(query, packet, packet.length), query }
}

function bytes(...octets: number[]): Uint8Array {
  return Uint8Array.from(octets)
}

/** A query with its header counts set and octets appended. */
function withCounts(counts: [number, number, number, number], tail: Uint8Array): Uint8Array {
  const packet = Buffer.concat([wireQuery({ name: 'www.example.org' }), tail])
  for (const [i, count] of counts.entries()) packet.writeUInt16BE(count, 4 + 2 * i)
  return packet
}

const A_RECORD = Buffer.concat([
  wireName('x.example.org'),
  bytes(0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1),
])

const TSIG = bytes(0, 0, 250, 0, 255, 0, 0, 0, 0, 0, 0)
const OPT = wireOpt({})

t.test(
  'a TSIG record is the last of the additional section, or the packet is malformed',
  async (t) => {
    const question = wireQuery({ name: 'www.example.org' }).length
    const table: { given: Uint8Array; want: ParseStatus; at: number }[] = [
      { given: withCounts([1, 0, 0, 1], TSIG), want: ParseStatus.Ok, at: question },
      { given: withCounts([1, 0, 0, 2], Buffer.concat([OPT, TSIG])), want: 0, at: question + 11 },
      {
        given: withCounts([1, 0, 0, 2], Buffer.concat([TSIG, OPT])),
        want: ParseStatus.FormErr,
        at: 0,
      },
      {
        given: withCounts([1, 0, 0, 2], Buffer.concat([TSIG, TSIG])),
        want: ParseStatus.FormErr,
        at: 0,
      },
      { given: withCounts([1, 1, 0, 0], TSIG), want: ParseStatus.FormErr, at: 0 },
      { given: withCounts([1, 0, 1, 0], TSIG), want: ParseStatus.FormErr, at: 0 },
    ]
    for (const [i, { given, want, at }] of table.entries()) {
      const { status, query } = parse(given)
      t.equal(status, want, `case ${i}`)
      t.equal(query.tsigOffset, at, `case ${i}`)
    }
  },
)

t.test('the status of each kind of packet', async (t) => {
  const plain = wireQuery({ name: 'www.example.org' })
  const opcode = (n: number): Uint8Array => wireQuery({ name: 'www.example.org', flags: n << 11 })
  const longest = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`
  const opt = wireOpt({})
  const table: { name: string; given: Uint8Array; want: ParseStatus }[] = [
    { name: 'an ordinary query', given: plain, want: ParseStatus.Ok },
    { name: 'a query for the root', given: wireQuery({ name: '.' }), want: ParseStatus.Ok },
    { name: 'an empty packet', given: bytes(), want: ParseStatus.Ignore },
    { name: 'eleven octets', given: plain.subarray(0, 11), want: ParseStatus.Ignore },
    {
      name: 'a response',
      given: wireQuery({ name: 'a', flags: 0x8000 }),
      want: ParseStatus.Ignore,
    },
    { name: 'a header alone', given: plain.subarray(0, 12), want: ParseStatus.FormErr },
    { name: 'IQUERY', given: opcode(1), want: ParseStatus.NotImp },
    { name: 'STATUS', given: opcode(2), want: ParseStatus.NotImp },
    { name: 'NOTIFY has the form of a query', given: opcode(4), want: ParseStatus.Ok },
    { name: 'UPDATE', given: opcode(5), want: ParseStatus.NotImp },
    {
      name: 'UPDATE with no question: the opcode is judged first',
      given: bytes(0, 1, 0x28, 0, 0, 0, 0, 0, 0, 0, 0, 0),
      want: ParseStatus.NotImp,
    },
    {
      name: 'no question',
      given: withCounts([0, 0, 0, 0], bytes()),
      want: ParseStatus.FormErr,
    },
    {
      name: 'two questions',
      given: withCounts([2, 0, 0, 0], plain.subarray(12)),
      want: ParseStatus.FormErr,
    },
    {
      name: '257 questions',
      given: withCounts([257, 0, 0, 0], bytes()),
      want: ParseStatus.FormErr,
    },
    { name: 'the longest name', given: wireQuery({ name: longest }), want: ParseStatus.Ok },
    {
      name: 'a name of 256 octets',
      given: wireQuery({ name: `${longest}d` }),
      want: ParseStatus.FormErr,
    },
    {
      name: 'a pointer in the question',
      given: wireQuery({ name: bytes(1, 97, 0xc0, 12) }),
      want: ParseStatus.FormErr,
    },
    {
      name: 'a label of type 01',
      given: wireQuery({ name: bytes(0x40, 97, 0) }),
      want: ParseStatus.FormErr,
    },
    {
      name: 'a label of type 10',
      given: wireQuery({ name: bytes(0x80, 97, 0) }),
      want: ParseStatus.FormErr,
    },
    {
      name: 'one answer record',
      given: withCounts([1, 1, 0, 0], A_RECORD),
      want: ParseStatus.Ok,
    },
    {
      name: 'two answer records',
      given: withCounts([1, 2, 0, 0], Buffer.concat([A_RECORD, A_RECORD])),
      want: ParseStatus.FormErr,
    },
    {
      name: 'one authority record and OPT',
      given: withCounts([1, 0, 1, 1], Buffer.concat([A_RECORD, opt])),
      want: ParseStatus.Ok,
    },
    {
      name: 'two authority records',
      given: withCounts([1, 0, 2, 0], Buffer.concat([A_RECORD, A_RECORD])),
      want: ParseStatus.FormErr,
    },
    {
      name: 'OPT and another additional record',
      given: withCounts([1, 0, 0, 2], Buffer.concat([opt, A_RECORD])),
      want: ParseStatus.Ok,
    },
    {
      name: 'three additional records',
      given: withCounts([1, 0, 0, 3], Buffer.concat([opt, A_RECORD, A_RECORD])),
      want: ParseStatus.FormErr,
    },
    {
      name: 'a record that the header promises and the packet lacks',
      given: withCounts([1, 0, 0, 1], bytes()),
      want: ParseStatus.FormErr,
    },
    {
      name: 'rdata that ends behind the packet',
      given: withCounts([1, 0, 0, 1], A_RECORD.subarray(0, -1)),
      want: ParseStatus.FormErr,
    },
    {
      name: 'octets behind the last record',
      given: Buffer.concat([plain, bytes(1, 2, 3)]),
      want: ParseStatus.Ok,
    },
    {
      name: 'two OPT records',
      given: withCounts([1, 0, 0, 2], Buffer.concat([opt, opt])),
      want: ParseStatus.FormErr,
    },
    {
      name: 'OPT in the answer section',
      given: withCounts([1, 1, 0, 0], opt),
      want: ParseStatus.FormErr,
    },
    {
      name: 'OPT that is not owned by the root',
      given: withCounts([1, 0, 0, 1], Buffer.concat([wireName('a'), opt.subarray(1)])),
      want: ParseStatus.FormErr,
    },
    {
      name: 'OPT owned by a pointer to a root label',
      given: withCounts([1, 0, 0, 1], Buffer.concat([bytes(0xc0, 28), opt.subarray(1)])),
      want: ParseStatus.FormErr,
    },
    {
      name: 'EDNS version 1',
      given: wireQuery({ name: 'a', edns: { version: 1 } }),
      want: ParseStatus.BadVers,
    },
    {
      name: 'EDNS version 1 with options that version 0 would find malformed',
      given: wireQuery({ name: 'a', edns: { version: 1, options: [[8, bytes(1)]] } }),
      want: ParseStatus.BadVers,
    },
  ]
  for (const { name, given, want } of table) t.equal(parse(given).status, want, name)
})

t.test('EDNS options', async (t) => {
  const zeros = (n: number): Uint8Array => new Uint8Array(n)
  const ecs = (...data: number[]): [number, Uint8Array] => [8, bytes(...data)]
  const table: {
    name: string
    options: [number, Uint8Array][]
    ok: boolean
  }[] = [
    { name: 'ECS IPv4 /24', options: [ecs(0, 1, 24, 0, 192, 0, 2)], ok: true },
    { name: 'ECS IPv4 /0', options: [ecs(0, 1, 0, 0)], ok: true },
    { name: 'ECS IPv4 /32', options: [ecs(0, 1, 32, 0, 192, 0, 2, 1)], ok: true },
    { name: 'ECS IPv6 /56', options: [ecs(0, 2, 56, 0, 32, 1, 13, 184, 0, 1, 2)], ok: true },
    { name: 'ECS IPv4 /33', options: [ecs(0, 1, 33, 0, 192, 0, 2, 1, 0)], ok: false },
    {
      name: 'ECS IPv6 /129',
      options: [[8, Buffer.concat([bytes(0, 2, 129, 0), zeros(17)])]],
      ok: false,
    },
    { name: 'ECS with a scope', options: [ecs(0, 1, 24, 24, 192, 0, 2)], ok: false },
    { name: 'ECS with too short an address', options: [ecs(0, 1, 24, 0, 192, 0)], ok: false },
    { name: 'ECS with too long an address', options: [ecs(0, 1, 24, 0, 192, 0, 2, 0)], ok: false },
    {
      name: 'ECS with bits behind the prefix',
      options: [ecs(0, 1, 20, 0, 192, 0, 0x18)],
      ok: false,
    },
    {
      name: 'ECS with zero bits behind the prefix',
      options: [ecs(0, 1, 20, 0, 192, 0, 0x10)],
      ok: true,
    },
    { name: 'ECS of family 3', options: [ecs(0, 3, 0, 0)], ok: false },
    { name: 'ECS of family 257, not mistaken for IPv4', options: [ecs(1, 1, 0, 0)], ok: false },
    { name: 'ECS of family 0 without an address', options: [ecs(0, 0, 0, 0)], ok: true },
    { name: 'ECS of family 0 with an address', options: [ecs(0, 0, 8, 0, 1)], ok: false },
    { name: 'ECS of three octets', options: [ecs(0, 1, 0)], ok: false },
    { name: 'an empty ECS option', options: [ecs()], ok: false },
    { name: 'a client cookie', options: [[10, zeros(8)]], ok: true },
    { name: 'a cookie of no octets', options: [[10, zeros(0)]], ok: false },
    { name: 'a cookie of 7 octets', options: [[10, zeros(7)]], ok: false },
    { name: 'a cookie of 15 octets', options: [[10, zeros(15)]], ok: false },
    { name: 'a cookie of 16 octets', options: [[10, zeros(16)]], ok: true },
    { name: 'a cookie of 40 octets', options: [[10, zeros(40)]], ok: true },
    { name: 'a cookie of 41 octets', options: [[10, zeros(41)]], ok: false },
    {
      name: 'a second, bad cookie is not looked at',
      options: [
        [10, zeros(8)],
        [10, zeros(3)],
      ],
      ok: true,
    },
    { name: 'a request for the version of the zone', options: [[19, zeros(0)]], ok: true },
    { name: 'such a request with a version', options: [[19, zeros(6)]], ok: false },
    { name: 'a keepalive request', options: [[11, zeros(0)]], ok: true },
    { name: 'a keepalive request with a timeout', options: [[11, zeros(2)]], ok: false },
    { name: 'an unknown option', options: [[65001, zeros(100)]], ok: true },
  ]
  for (const { name, options, ok } of table) {
    const { status } = parse(wireQuery({ name: 'a', edns: { options } }))
    t.equal(status, ok ? ParseStatus.Ok : ParseStatus.FormErr, name)
  }
})

t.test('the flags DO and CO', async (t) => {
  for (const flags of [0, 0x4000, 0x8000, 0xc000]) {
    const { query } = parse(wireQuery({ name: 'a', edns: { flags } }))
    t.match(query, { dnssecOk: flags >= 0x8000, compactOk: (flags & 0x4000) !== 0 })
  }
})

t.test('a cut option is refused', async (t) => {
  const packet = Buffer.from(wireQuery({ name: 'a', edns: { options: [[3, bytes(1, 2)]] } }))
  packet.writeUInt16BE(3, packet.length - 4)
  t.equal(parse(packet).status, ParseStatus.FormErr)
})

t.test('the query is filled in', async (t) => {
  const spec: QuerySpec = {
    id: 0xabcd,
    flags: 0x0110,
    name: 'WWW.Example.ORG',
    type: 28,
    rrclass: 3,
    edns: {
      payload: 4096,
      flags: 0x8000,
      options: [
        [3, bytes()],
        [8, bytes(0, 2, 32, 0, 32, 1, 13, 184)],
        [8, bytes(0, 1, 8, 0, 10)],
        [10, bytes(1, 2, 3, 4, 5, 6, 7, 8)],
        [11, bytes()],
        [65313, bytes()],
      ],
    },
  }
  const packet = wireQuery(spec)
  const { status, query } = parse(packet)
  t.equal(status, ParseStatus.Ok)
  t.match(query, {
    id: 0xabcd,
    flags: 0x0110,
    opcode: 0,
    qtype: 28,
    qclass: 3,
    qnameOctets: 17,
    labelCount: 3,
    questionOctets: 21,
    hasEdns: true,
    payloadOctets: 4096,
    dnssecOk: true,
    compactOk: false,
    nsidRequested: true,
    cookieOctets: 8,
    hasEcs: true,
    ecsFamily: 2,
    ecsSourceBits: 32,
    keepaliveRequested: true,
  })
  t.strictSame([...query.qname.subarray(0, 17)], [...wireName('www.example.org')])
  t.strictSame([...query.labelOffset.subarray(0, 4)], [0, 4, 12, 16])
  const suffixes = ['www.example.org', 'example.org', 'org', '.']
  const buffer = new NameBuffer()
  suffixes.forEach((suffix, i) => {
    const name = wireName(suffix)
    t.ok(buffer.set(name, 0, name.length))
    t.equal(query.suffixHash[i], buffer.suffixHash[0], `hash of ${suffix}`)
  })
  t.strictSame([...query.ecsAddress], [32, 1, 13, 184, ...new Array(12).fill(0)])
  t.equal(packet[query.cookieOffset + 7], 8)
})

t.test('no field of an earlier query remains', async (t) => {
  const query = new Query()
  const rich = wireQuery({
    name: 'www.example.org',
    edns: {
      flags: 0x8000,
      options: [
        [3, bytes()],
        [8, bytes(0, 1, 8, 0, 10)],
        [10, new Uint8Array(8)],
        [11, bytes()],
        [19, bytes()],
      ],
    },
  })
  parseQuery(query, rich, rich.length)
  t.ok(query.zoneVersionRequested)
  const plain = wireQuery({ name: 'a' })
  parseQuery(query, plain, plain.length)
  t.match(query, {
    hasEdns: false,
    payloadOctets: 0,
    dnssecOk: false,
    nsidRequested: false,
    zoneVersionRequested: false,
    cookieOctets: 0,
    hasEcs: false,
    ecsFamily: 0,
    keepaliveRequested: false,
    clientIsEcs: false,
  })
})

t.test('a question is kept wherever it could be read', async (t) => {
  const broken = withCounts([1, 0, 0, 1], bytes(1))
  const { status, query } = parse(broken)
  t.equal(status, ParseStatus.FormErr)
  t.equal(query.questionOctets, 21)
  t.equal(parse(wireQuery({ name: bytes(0xc0, 12) })).query.questionOctets, 0)
})

t.test('a query longer than 512 octets is read whole', async (t) => {
  const options: [number, Uint8Array][] = [
    [12, new Uint8Array(2000)],
    [8, bytes(0, 1, 8, 0, 10)],
  ]
  const { status, query } = parse(wireQuery({ name: 'example.org', edns: { options } }))
  t.equal(status, ParseStatus.Ok)
  t.equal(query.ecsFamily, 1)
})

t.test('octets beyond the packet in its buffer are not read', async (t) => {
  const whole = wireQuery({ name: 'www.example.org', edns: {} })
  const query = new Query()
  for (let octets = 12; octets < whole.length; octets++) {
    t.not(parseQuery(query, whole, octets), ParseStatus.Ok, `${octets} of ${whole.length}`)
  }
  t.equal(parseQuery(query, whole, whole.length + 1), ParseStatus.Ignore)
})

t.test('any octets at all give a status', async () => {
  const query = new Query()
  const statuses = new Set<number>(Object.values(ParseStatus))
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.boolean(), (octets, asQuery) => {
      if (asQuery && octets.length >= 12) {
        octets.set([0, 0, 0, 1, 0, octets[7]! & 1, 0, octets[9]! & 1, 0, octets[11]! & 3], 2)
      }
      return statuses.has(parseQuery(query, octets, octets.length))
    }),
    { seed: 7, numRuns: 5000 },
  )
})
