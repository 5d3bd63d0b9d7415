import fc from 'fast-check'
import t from 'tap'
import { observeHints, observeReply } from '../../../src/client/resolver/observation.ts'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { HeaderFlag } from '../../../src/dns/message/header.ts'
import type { Message, ResourceRecord } from '../../../src/dns/message/message.ts'
import { printName, scanName } from '../../../src/dns/name/name.ts'
import { scanAddress } from '../../../src/dns/text/address.ts'

function rr(owner: string, ttlSeconds: number, type: 'A' | 'AAAA' | 'CNAME', data: string) {
  const rdata = type === 'CNAME' ? scanName(data)! : scanAddress(data)!.bytes
  const record: ResourceRecord = {
    owner: scanName(owner)!,
    type: RRType[type],
    rrclass: RRClass.IN,
    ttlSeconds,
    rdata,
  }
  return record
}

function reply(answer: readonly ResourceRecord[], more: Partial<Message> = {}): Message {
  return {
    id: 1,
    opcode: 0,
    flags: HeaderFlag.QR,
    rcode: Rcode.NOERROR,
    question: { name: scanName('WWW.example.')!, type: RRType.A, rrclass: RRClass.IN },
    answer,
    authority: [],
    additional: [],
    edns: undefined,
    ...more,
  }
}

function seen(message: Message): readonly string[] | string {
  const observed = observeReply(message, 1000, '192.0.2.53')
  if (observed === undefined) return 'ignored'
  if (observed.kind !== 'answer') return 'reason' in observed ? observed.reason : observed.kind
  return observed.facts.map(({ address, ttlSeconds, chain }) => {
    return [address, ttlSeconds, ...chain.map((name) => printName(name))].join(' ')
  })
}

t.test('only addresses that the chain of the question leads to are learned', async (t) => {
  const question = { name: scanName('www.example.')!, type: RRType.AAAA, rrclass: RRClass.IN }
  const cname = rr('www.example.', 30, 'CNAME', 'Web.example.')
  const table: { name: string; message: Message; want: readonly string[] | string }[] = [
    {
      name: 'plain',
      message: reply([rr('www.EXAMPLE.', 60, 'A', '192.0.2.1')]),
      want: ['192.0.2.1 60'],
    },
    {
      name: 'a chain in any order',
      message: reply([
        rr('cdn.example.', 90, 'A', '192.0.2.1'),
        rr('web.example.', 20, 'CNAME', 'cdn.example.'),
        cname,
      ]),
      want: ['192.0.2.1 90 web.example. cdn.example.'],
    },
    {
      name: 'another owner',
      message: reply([
        rr('evil.example.', 60, 'A', '192.0.2.9'),
        rr('www.example.', 60, 'A', '192.0.2.1'),
      ]),
      want: ['192.0.2.1 60'],
    },
    {
      name: 'a detached chain',
      message: reply([rr('x.', 9, 'CNAME', 'y.'), rr('y.', 9, 'A', '192.0.2.9')]),
      want: 'nodata',
    },
    {
      name: 'an address beside a CNAME',
      message: reply([cname, rr('www.example.', 9, 'A', '192.0.2.9')]),
      want: 'nodata',
    },
    { name: 'only a CNAME', message: reply([cname]), want: 'nodata' },
    { name: 'nothing', message: reply([]), want: 'nodata' },
    { name: 'NXDOMAIN', message: reply([cname], { rcode: Rcode.NXDOMAIN }), want: 'NXDOMAIN' },
    { name: 'SERVFAIL', message: reply([], { rcode: Rcode.SERVFAIL }), want: 'SERVFAIL' },
    {
      name: 'a loop',
      message: reply([
        cname,
        rr('web.example.', 9, 'CNAME', 'www.example.'),
        rr('www.example.', 9, 'A', '192.0.2.9'),
      ]),
      want: 'CNAME loop',
    },
    {
      name: 'a chain of 17 steps',
      message: reply([
        ...Array.from({ length: 17 }, (_, i) => {
          return rr(i === 0 ? 'www.example.' : `n${i}.`, 9, 'CNAME', `n${i + 1}.`)
        }),
        rr('n17.', 9, 'A', '192.0.2.1'),
      ]),
      want: [`192.0.2.1 9 ${Array.from({ length: 17 }, (_, i) => `n${i + 1}.`).join(' ')}`],
    },
    {
      name: 'other type',
      message: reply([rr('www.example.', 9, 'AAAA', '2001:db8::1')]),
      want: 'nodata',
    },
    {
      name: 'IPv4-mapped',
      message: reply([rr('www.example.', 9, 'AAAA', '::ffff:192.0.2.1')], { question }),
      want: ['192.0.2.1 9'],
    },
    {
      name: 'a TTL above 2^31',
      message: reply([rr('www.example.', 2 ** 31, 'A', '192.0.2.1')]),
      want: ['192.0.2.1 0'],
    },
    {
      name: 'a TTL of years',
      message: reply([rr('www.example.', 2 ** 30, 'A', '192.0.2.1')]),
      want: ['192.0.2.1 604800'],
    },
    { name: 'no question', message: reply([], { question: undefined }), want: 'ignored' },
    {
      name: 'another class',
      message: reply([], { question: { ...question, rrclass: RRClass.CH } }),
      want: 'ignored',
    },
    {
      name: 'the additional section',
      message: reply([], { additional: [rr('www.example.', 9, 'A', '192.0.2.9')] }),
      want: 'nodata',
    },
  ]
  for (const { name, message, want } of table) t.strictSame(seen(message), want, name)
})

t.test('every learned address has a witness in the answer', async () => {
  const name = fc.constantFrom('www.example.', 'a.', 'b.', 'c.')
  const record = fc.oneof(
    fc.tuple(name, fc.nat(3)).map(([owner, i]) => rr(owner, 9, 'A', `192.0.2.${i}`)),
    fc.tuple(name, name).map(([owner, target]) => rr(owner, 9, 'CNAME', target)),
  )
  fc.assert(
    fc.property(fc.array(record, { maxLength: 8 }), (answer) => {
      const observed = observeReply(reply(answer), 0, '')
      if (observed?.kind !== 'answer') return true
      return observed.facts.every(({ chain, address }) => {
        const path = [scanName('www.example.')!, ...chain]
        const has = (owner: Uint8Array, rdata: Uint8Array): boolean => {
          return answer.some((record) => {
            const isOwner = Buffer.compare(record.owner, owner) === 0
            return isOwner && Buffer.compare(record.rdata, rdata) === 0
          })
        }
        const hasLinks = chain.every((target, i) => has(path[i]!, target))
        return hasLinks && has(path.at(-1)!, scanAddress(address)!.bytes)
      })
    }),
  )
})

t.test('hints of HTTPS and SVCB', async (t) => {
  const hint = (key: number, ...octets: readonly number[]) => [0, key, 0, octets.length, ...octets]
  const target = [3, 0x77, 0x77, 0x77, 0]
  const mapped = [...new Array(10).fill(0), 0xff, 0xff, 10, 0, 0, 1]
  const table: { name: string; rdata: readonly number[]; want: readonly string[] }[] = [
    { name: 'none', rdata: [0, 1, 0], want: [] },
    {
      name: 'both families, behind a target and another key',
      rdata: [
        0,
        1,
        ...target,
        ...hint(1, 2, 104, 50),
        ...hint(4, 192, 0, 2, 1),
        ...hint(6, ...mapped),
      ],
      want: ['1: 192.0.2.1 60', '2: 10.0.0.1 60'],
    },
    { name: 'an empty hint', rdata: [0, 1, 0, ...hint(4)], want: [] },
    { name: 'a part of an address', rdata: [0, 1, 0, ...hint(4, 192, 0, 2, 1, 9)], want: [] },
    { name: 'a cut value', rdata: [0, 1, 0, 0, 4, 0, 8, 192, 0, 2, 1], want: [] },
    { name: 'a cut length', rdata: [0, 1, 0, 0, 4, 0], want: [] },
    { name: 'a cut target', rdata: [0, 1, 9, 1], want: [] },
    { name: 'a compressed target', rdata: [0, 1, 0xc0, 12, ...hint(4, 192, 0, 2, 1)], want: [] },
    { name: 'nothing', rdata: [], want: [] },
  ]
  for (const type of [RRType.HTTPS, RRType.SVCB]) {
    for (const { name, rdata, want } of table) {
      const owner = scanName('www.example.')!
      const question = { name: owner, type, rrclass: RRClass.IN }
      const record = {
        owner,
        type,
        rrclass: RRClass.IN,
        ttlSeconds: 60,
        rdata: Uint8Array.from(rdata),
      }
      const got = observeHints(reply([record], { question }), 1000, '').flatMap((observed) => {
        const facts = observed.kind === 'answer' ? observed.facts : []
        return facts.map((fact) => `${observed.family}: ${fact.address} ${fact.ttlSeconds}`)
      })
      t.strictSame(got, want, name)
    }
  }
  const question = { name: scanName('www.example.')!, type: RRType.A, rrclass: RRClass.IN }
  t.strictSame(observeHints(reply([], { question }), 1000, ''), [], 'another type')
})

t.test('an address of the wrong length is not learned', async (t) => {
  const record = {
    ...rr('www.example.', 60, 'A', '192.0.2.1'),
    rdata: Uint8Array.from([192, 0, 2]),
  }
  t.equal(seen(reply([record])), 'nodata')
})
