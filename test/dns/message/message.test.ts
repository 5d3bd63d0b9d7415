import fc from 'fast-check'
import t from 'tap'
import { OptionCode, Rcode, RRType } from '../../../src/dns/iana/index.ts'
import { composeMessage } from '../../../src/dns/message/compose-message.ts'
import { EDNS_DNSSEC_OK, HeaderFlag, MESSAGE_OCTETS_MAX } from '../../../src/dns/message/header.ts'
import type { Message, ResourceRecord } from '../../../src/dns/message/message.ts'
import { parseMessage } from '../../../src/dns/message/parse-message.ts'
import { printMessage } from '../../../src/dns/message/print-message.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import { scanRdata, splitFields } from '../../../src/dns/rdata/index.ts'
import { arbitraryName, arbitraryOctets } from '../../support/arbitrary.ts'
import { arbitraryRdata } from '../../support/arbitrary-rdata.ts'

function record(
  owner: string,
  ttlSeconds: number,
  type: keyof typeof RRType,
  text: string,
): ResourceRecord {
  const rdata = scanRdata(RRType[type], splitFields(text)!, scanName('example.org.')!)
  if (!(rdata instanceof Uint8Array)) throw new Error(rdata.message)
  return { owner: scanName(owner)!, type: RRType[type], rrclass: 1, ttlSeconds, rdata }
}

const empty: Message = {
  id: 0,
  opcode: 0,
  flags: 0,
  rcode: 0,
  question: undefined,
  answer: [],
  authority: [],
  additional: [],
  edns: undefined,
}

const full: Message = {
  id: 4660,
  opcode: 0,
  flags: HeaderFlag.QR | HeaderFlag.AA | HeaderFlag.RD,
  rcode: Rcode.NOERROR,
  question: { name: scanName('www.example.org.')!, type: RRType.A, rrclass: 1 },
  answer: [
    record('www.example.org.', 300, 'CNAME', 'eu.www'),
    record('eu.www.example.org.', 60, 'A', '192.0.2.1'),
    record('a-rather-long-name-indeed.example.org.', 86400, 'MX', '10 mail'),
  ],
  authority: [record('example.org.', 3600, 'NS', 'ns1')],
  additional: [record('ns1.example.org.', 3600, 'AAAA', '2001:db8::1')],
  edns: {
    payloadOctets: 1232,
    version: 0,
    flags: EDNS_DNSSEC_OK,
    options: [
      { code: OptionCode.NSID, data: Buffer.from('ns1\x07') },
      { code: OptionCode.ECS, data: Buffer.from('0001181051024500'.slice(0, 14), 'hex') },
      { code: OptionCode.COOKIE, data: Buffer.from('0123456789abcdef', 'hex') },
      { code: OptionCode.EDE, data: Buffer.from('\0\x12geo\x1b[31m fence', 'latin1') },
      { code: OptionCode.EDE, data: Buffer.from('0007', 'hex') },
      { code: OptionCode.KEEPALIVE, data: Buffer.from('0064', 'hex') },
      { code: OptionCode.PADDING, data: Buffer.alloc(3) },
      { code: 65001, data: Buffer.from('hi') },
      { code: 65002, data: Buffer.alloc(0) },
    ],
  },
}

t.test('printMessage lays a message out as dig does', (t) => {
  t.equal(
    printMessage(full),
    [
      ';; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 4660',
      ';; flags: qr aa rd; QUERY: 1, ANSWER: 3, AUTHORITY: 1, ADDITIONAL: 2',
      '',
      ';; OPT PSEUDOSECTION:',
      '; EDNS: version: 0, flags: do; udp: 1232',
      '; NSID: 6e 73 31 07 ("ns1.")',
      '; CLIENT-SUBNET: 81.2.69.0/24/16',
      '; COOKIE: 0123456789abcdef',
      '; EDE: 18 (Prohibited): (geo.[31m fence)',
      '; EDE: 7 (Signature Expired)',
      '; TCP KEEPALIVE: 10.0 secs',
      '; PAD: (3 bytes)',
      '; OPT=65001: 68 69 ("hi")',
      '; OPT=65002',
      ';; QUESTION SECTION:',
      ';www.example.org.\t\tIN\tA',
      '',
      ';; ANSWER SECTION:',
      'www.example.org.\t300\tIN\tCNAME\teu.www.example.org.',
      'eu.www.example.org.\t60\tIN\tA\t192.0.2.1',
      'a-rather-long-name-indeed.example.org. 86400 IN MX 10 mail.example.org.',
      '',
      ';; AUTHORITY SECTION:',
      'example.org.\t\t3600\tIN\tNS\tns1.example.org.',
      '',
      ';; ADDITIONAL SECTION:',
      'ns1.example.org.\t3600\tIN\tAAAA\t2001:db8::1',
      '',
      '',
    ].join('\n'),
  )
  t.match(
    printMessage({ ...empty, flags: HeaderFlag.Z, opcode: 4 }),
    /opcode: NOTIFY(?:.|\n)*flags: ; MBZ: 0x4; QUERY: 0/,
  )
  t.end()
})

t.test('composeMessage compresses names where RFC 3597 lets it', (t) => {
  const wire = Buffer.from(composeMessage({ ...full, edns: undefined })).toString('latin1')
  t.equal(wire.split('example').length - 1, 1, 'the shared tail is written once')
  const srv = {
    ...empty,
    answer: [record('a.', 1, 'SRV', '1 2 3 b.a.'), record('a.', 1, 'SRV', '1 2 3 b.a.')],
  }
  t.equal(Buffer.from(composeMessage(srv)).toString('latin1').split('\x01b\x01a\0').length - 1, 2)
  t.end()
})

t.test('records that do not fit a message are left out, and TC is set', (t) => {
  const big = record('big.example.org.', 1, 'TXT', `"${'x'.repeat(255)}" `.repeat(78))
  const message = { ...full, answer: [big, big, big, big], authority: [record('.', 1, 'NS', 'a')] }
  const parsed = parseMessage(composeMessage(message))
  t.equal(parsed?.answer.length, 3)
  t.equal(parsed?.authority.length, 0)
  t.equal(parsed?.additional.length, 0)
  t.strictSame(parsed?.edns?.options.length, full.edns?.options.length, 'the OPT record stays')
  t.equal(parsed?.flags, full.flags | HeaderFlag.TC)
  t.ok(composeMessage(message).length <= MESSAGE_OCTETS_MAX)
  t.end()
})

t.test('names beyond the reach of pointers are still right', (t) => {
  const filler = record('x.', 1, 'TXT', `"${'x'.repeat(255)}" `.repeat(70))
  const tail = [record('far.away.example.net.', 1, 'NS', 'ns.away.example.net.')]
  const message = { ...empty, answer: [filler, ...tail, ...tail] }
  t.strictSame(parseMessage(composeMessage(message))?.answer[2]?.rdata, tail[0]?.rdata)
  t.end()
})

t.test('a TTL above 2^31 - 1 counts as 0', (t) => {
  const answer = [0x7fff_ffff, 0x8000_0000, 0xffff_ffff].map((ttl) => {
    return record('www.example.org.', ttl, 'A', '192.0.2.1')
  })
  const parsed = parseMessage(composeMessage({ ...empty, answer }))!
  const ttls = parsed.answer.map(({ ttlSeconds }) => ttlSeconds)
  t.strictSame(ttls, [0x7fff_ffff, 0, 0])
  t.end()
})

const arbitraryRecord: fc.Arbitrary<ResourceRecord> = fc
  .constantFrom(...arbitraryRdata.keys(), 65280)
  .chain((type) =>
    fc.record({
      owner: arbitraryName,
      type: fc.constant(type),
      rrclass: fc.nat({ max: 65535 }),
      ttlSeconds: fc.nat({ max: 0x7fffffff }),
      rdata: arbitraryRdata.get(type) ?? arbitraryOctets(30),
    }),
  )
const section = fc.array(arbitraryRecord, { maxLength: 3 })

const arbitraryMessage: fc.Arbitrary<Message> = fc
  .record({
    id: fc.nat({ max: 65535 }),
    opcode: fc.nat({ max: 15 }),
    flags: fc.nat({ max: 65535 }).map((bits) => bits & 0x87f0),
    rcode: fc.nat({ max: 4095 }),
    question: fc.option(
      fc.record({
        name: arbitraryName,
        type: fc.nat({ max: 65535 }),
        rrclass: fc.nat({ max: 65535 }),
      }),
      { nil: undefined },
    ),
    answer: section,
    authority: section,
    additional: section,
    edns: fc.option(
      fc.record({
        payloadOctets: fc.nat({ max: 65535 }),
        version: fc.nat({ max: 255 }),
        flags: fc.nat({ max: 65535 }),
        options: fc.array(fc.record({ code: fc.nat({ max: 65535 }), data: arbitraryOctets(20) }), {
          maxLength: 4,
        }),
      }),
      { nil: undefined },
    ),
  })
  .map((message) =>
    message.edns === undefined ? { ...message, rcode: message.rcode & 15 } : message,
  )

/** Plain Uint8Arrays all through, so that two messages compare by octets alone. */
function plain(message: Message | undefined): unknown {
  return JSON.stringify(message, (_key, value) =>
    ArrayBuffer.isView(value) ? Buffer.from(value as Uint8Array).toString('hex') : value,
  )
}

t.test('a message is the same after compose and parse', (t) => {
  fc.assert(
    fc.property(arbitraryMessage, (message) => {
      t.equal(plain(parseMessage(composeMessage(message))), plain(message))
      printMessage(message)
    }),
    { seed: 1, numRuns: 300 },
  )
  t.end()
})

t.test(
  'a message cut short or with an octet flipped is refused or whole, and never throws',
  (t) => {
    const messages = [full, ...fc.sample(arbitraryMessage, { seed: 2, numRuns: 12 })]
    for (const message of messages) {
      const wire = composeMessage(message)
      let whole = true
      for (let i = 0; i < wire.length; i++) {
        whole &&= parseMessage(wire.subarray(0, i)) === undefined
        for (const flip of [0xff, 0x01, 0xc0]) {
          const parsed = parseMessage(wire.with(i, wire[i]! ^ flip))
          if (parsed !== undefined)
            whole &&= plain(parseMessage(composeMessage(parsed))) === plain(parsed)
        }
      }
      t.ok(whole, `${wire.length} octets`)
    }
    t.end()
  },
)

t.test('random octets never throw', (t) => {
  fc.assert(
    fc.property(arbitraryOctets(100), fc.nat({ max: 3 }), (octets, records) => {
      const packet = new Uint8Array(12 + octets.length)
      packet[7] = records
      packet.set(octets, 12)
      parseMessage(packet)
      parseMessage(octets)
    }),
    { seed: 3, numRuns: 2000 },
  )
  t.pass('nothing was thrown')
  t.end()
})

t.test('parseMessage refuses', (t) => {
  const opt = '0000290200000000000000'
  const header = (counts: string) => `00008000${counts}`
  const table: { name: string; given: string }[] = [
    { name: 'nothing', given: '' },
    { name: 'half a header', given: '000080000000' },
    { name: 'two questions', given: `${header('0002000000000000')}${'0000010001'.repeat(2)}` },
    { name: 'a question that does not exist', given: header('0001000000000000') },
    { name: 'a record that does not exist', given: header('0000000000000001') },
    { name: 'octets left over', given: `${header('0000000000000000')}00` },
    { name: 'an OPT record in the answer', given: `${header('0000000100000000')}${opt}` },
    { name: 'an OPT record in the authority', given: `${header('0000000000010000')}${opt}` },
    { name: 'two OPT records', given: `${header('0000000000000002')}${opt}${opt}` },
    { name: 'an OPT record with an owner', given: `${header('0000000000000001')}0161${opt}` },
    { name: 'half an option', given: `${header('0000000000000001')}${opt.slice(0, -4)}0003000300` },
    {
      name: 'an option beyond the record',
      given: `${header('0000000000000001')}${opt.slice(0, -4)}000400030001`,
    },
    { name: 'a name that points to itself', given: `${header('0001000000000000')}c00c00010001` },
    {
      name: 'an address of three octets',
      given: `${header('0000000100000000')}0000010001000000000003c00002`,
    },
  ]
  for (const { name, given } of table) {
    t.equal(parseMessage(Buffer.from(given, 'hex')), undefined, name)
  }
  const whole = parseMessage(Buffer.from(`${header('0000000000000001')}${opt}`, 'hex'))
  t.equal(whole?.edns?.payloadOctets, 512, 'but not an OPT record in its place')
  t.end()
})
