import t from 'tap'
import { coveredType } from '../../../src/dns/dnssec/rrsig.ts'
import { Rcode, RRType } from '../../../src/dns/iana/index.ts'
import { Section } from '../../../src/dns/message/section.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import type { Question } from '../../support/transaction.ts'
import { SOA, type Source, source } from './source.ts'
import { ask, printSigned, start, writeKey } from './stage.ts'

/* What the link adds to replies of the links below. */

const CASES: readonly {
  readonly name: string
  readonly ask: Question
  readonly below: Source
  readonly rcode?: number
  readonly compactOk?: boolean
  readonly want: readonly (string | RegExp)[]
}[] = [
  {
    name: 'each RRset of the answer',
    ask: { name: 'www.example.org.' },
    below: {
      answer: [
        'www.example.org. 60 IN CNAME host.example.org.',
        'host.example.org. 30 IN A 192.0.2.1',
        'host.example.org. 30 IN A 192.0.2.2',
      ],
      authority: ['example.org. 99 IN NS ns.example.org.'],
      additional: ['ns.example.org. 88 IN A 192.0.2.53', 'ns.example.net. 88 IN A 192.0.2.54'],
    },
    want: [
      'answer www.example.org. CNAME 60 host.example.org.',
      'answer host.example.org. A 30 192.0.2.1, 192.0.2.2',
      'authority example.org. NS 99 ns.example.org.',
      'additional ns.example.org. A 88 192.0.2.53',
      'additional ns.example.net. A 88 192.0.2.54 unsigned',
    ],
  },
  {
    name: 'different TTLs: the lowest counts',
    ask: { name: 'a.example.org.' },
    below: { answer: ['a.example.org. 60 IN A 192.0.2.1', 'a.example.org. 50 IN A 192.0.2.2'] },
    want: ['answer a.example.org. A 60 192.0.2.1, 192.0.2.2'],
  },
  {
    name: 'the type is missing',
    ask: { name: 'a.example.org.', type: RRType.AAAA },
    below: { authority: [SOA] },
    want: [
      'authority example.org. SOA 300',
      /^authority a\.example\.org\. NSEC 60 \\000\.a\.example\.org\. A MD MF MB .* TXT RP AFSDB X25 .* TYPE65534$/,
    ],
  },
  {
    name: 'the name is missing',
    ask: { name: 'a.example.org.' },
    below: { authority: [SOA], rcode: Rcode.NXDOMAIN },
    want: [
      'authority example.org. SOA 300',
      'authority a.example.org. NSEC 60 \\000.a.example.org. RRSIG NSEC NXNAME',
    ],
  },
  {
    name: 'the name is missing, and the client accepts NXDOMAIN',
    ask: { name: 'a.example.org.' },
    below: { authority: [SOA], rcode: Rcode.NXDOMAIN },
    compactOk: true,
    rcode: Rcode.NXDOMAIN,
    want: [
      'authority example.org. SOA 300',
      'authority a.example.org. NSEC 60 \\000.a.example.org. RRSIG NSEC NXNAME',
    ],
  },
  {
    name: 'a CNAME leads to a name that is missing',
    ask: { name: 'a.example.org.' },
    below: {
      answer: ['a.example.org. 60 IN CNAME B.example.org.'],
      authority: [SOA],
      rcode: Rcode.NXDOMAIN,
    },
    want: [
      'answer a.example.org. CNAME 60 B.example.org.',
      'authority example.org. SOA 300',
      'authority B.example.org. NSEC 60 \\000.b.example.org. RRSIG NSEC NXNAME',
    ],
  },
  {
    name: 'a CNAME leads out of the zone',
    ask: { name: 'a.example.org.' },
    below: { answer: ['a.example.org. 60 IN CNAME b.example.net.'] },
    want: ['answer a.example.org. CNAME 60 b.example.net.'],
  },
  {
    name: 'a chain that the client continues',
    ask: { name: 'a.example.org.' },
    below: { answer: ['a.example.org. 60 IN CNAME b.example.org.'] },
    want: ['answer a.example.org. CNAME 60 b.example.org.'],
  },
  {
    name: 'a source without SOA',
    ask: { name: 'a.example.org.', type: RRType.AAAA },
    below: {},
    want: ['authority example.org. SOA 60', /NSEC 60 \\000\.a\.example\.org\. A /],
  },
  {
    name: 'a source without SOA is asked for it',
    ask: { name: 'example.org.', type: RRType.SOA },
    below: {},
    want: ['answer example.org. SOA 60'],
  },
  {
    name: 'the apex always exists',
    ask: { name: 'example.org.', type: RRType.CDS },
    below: { rcode: Rcode.NXDOMAIN },
    want: ['authority example.org. SOA 60', /NSEC 60 .*A NS MD MF SOA .* DNSKEY .* CDNSKEY/],
  },
  {
    name: 'a type that is not often used',
    ask: { name: 'a.example.org.', type: RRType.CDNSKEY },
    below: { authority: [SOA] },
    want: ['authority example.org. SOA 300', /NSEC 60 (?=.* CDS )(?=.* DSYNC )(?!.* CDNSKEY )/],
  },
  {
    name: 'keys, with CO',
    ask: { name: 'example.org.', type: RRType.DNSKEY },
    below: {},
    compactOk: true,
    want: ['answer example.org. DNSKEY 3600'],
  },
  {
    name: 'ANY of a source that does not know it',
    ask: { name: 'a.example.org.', type: RRType.ANY },
    below: { authority: [SOA] },
    want: [
      'authority example.org. SOA 300',
      /^answer a\.example\.org\. NSEC 60 .*A .*CNAME .* TXT /,
    ],
  },
  {
    name: 'ANY of a name that does not exist',
    ask: { name: 'a.example.org.', type: RRType.ANY },
    below: { rcode: Rcode.NXDOMAIN, authority: [SOA] },
    want: [
      'authority example.org. SOA 300',
      'authority a.example.org. NSEC 60 \\000.a.example.org. RRSIG NSEC NXNAME',
    ],
  },
  {
    name: 'NSEC of a name',
    ask: { name: 'a.example.org.', type: RRType.NSEC },
    below: { authority: [SOA] },
    want: [
      'authority example.org. SOA 300',
      /^answer a\.example\.org\. NSEC 60 .*A .*CNAME .* TXT /,
    ],
  },
  {
    name: 'NSEC of a name that is an alias',
    ask: { name: 'a.example.org.', type: RRType.NSEC },
    below: {
      answer: ['a.example.org. 60 IN CNAME b.example.org.'],
      authority: [SOA],
      rcode: Rcode.NXDOMAIN,
    },
    want: [
      'authority example.org. SOA 60',
      /^answer a\.example\.org\. NSEC 60 .*A .*CNAME .* TXT /,
    ],
  },
  {
    name: 'NSEC of a name that does not exist',
    ask: { name: 'a.example.org.', type: RRType.NSEC },
    below: { rcode: Rcode.NXDOMAIN, authority: [SOA] },
    want: [
      'authority example.org. SOA 300',
      'answer a.example.org. NSEC 60 \\000.a.example.org. RRSIG NSEC NXNAME',
    ],
  },
  {
    name: 'NSEC of a name that does not exist, with CO',
    ask: { name: 'a.example.org.', type: RRType.NSEC },
    below: { rcode: Rcode.NXDOMAIN, authority: [SOA] },
    compactOk: true,
    rcode: Rcode.NXDOMAIN,
    want: [
      'authority example.org. SOA 300',
      'authority a.example.org. NSEC 60 \\000.a.example.org. RRSIG NSEC NXNAME',
    ],
  },
  {
    name: 'a referral without DS',
    ask: { name: 'x.sub.example.org.' },
    below: {
      authority: ['sub.example.org. 99 IN NS ns.sub.example.org.'],
      additional: ['ns.sub.example.org. 99 IN A 192.0.2.1'],
      foreign: true,
    },
    want: [
      'authority sub.example.org. NS 99 ns.sub.example.org. unsigned',
      'additional ns.sub.example.org. A 99 192.0.2.1 unsigned',
      'authority sub.example.org. NSEC 99 \\000.sub.example.org. NS RRSIG NSEC',
    ],
  },
  {
    name: 'a referral with DS',
    ask: { name: 'x.sub.example.org.' },
    below: {
      authority: [
        'sub.example.org. 99 IN NS ns.example.net.',
        `sub.example.org. 99 IN DS 1 13 2 ${'00'.repeat(32)}`,
      ],
      foreign: true,
    },
    want: [
      'authority sub.example.org. NS 99 ns.example.net. unsigned',
      `authority sub.example.org. DS 99 1 13 2 ${'00'.repeat(32)}`,
    ],
  },
  {
    name: 'the answer of another server, whose TTL falls',
    ask: { name: 'a.example.org.' },
    below: { answer: ['a.example.org. 59 IN A 192.0.2.1'], foreign: true },
    want: ['answer a.example.org. A 59 192.0.2.1'],
  },
  {
    name: 'another zone',
    ask: { name: 'a.example.net.' },
    below: { answer: ['a.example.net. 60 IN A 192.0.2.1'] },
    want: ['answer a.example.net. A 60 192.0.2.1 unsigned'],
  },
  {
    name: 'records in the additional section only',
    ask: { name: 'a.example.org.' },
    below: { additional: ['a.example.org. 60 IN A 192.0.2.1'] },
    want: [
      'additional a.example.org. A 60 192.0.2.1',
      'authority example.org. SOA 60',
      /^authority a\.example\.org\. NSEC 60 /,
    ],
  },
]

t.test('replies', async (t) => {
  const directory = temporaryDirectory(t)
  const key = await writeKey(directory, 'example.org.')
  const c = await start(t, [key])
  for (const { name, ask: question, below, compactOk, rcode = Rcode.NOERROR, want } of CASES) {
    const { status, response } = ask(c.handler(source(below)), question, compactOk)
    const lines = printSigned(response, [key.key])
    for (const [i, line] of lines.entries()) {
      const pattern = want[i] ?? ''
      if (typeof pattern === 'string') t.equal(line, pattern, name)
      else t.match(line, pattern, name)
      if (pattern instanceof RegExp) t.notMatch(line, /unsigned|bogus/, name)
    }
    t.equal(lines.length, want.length, `${name}: all records`)
    t.equal(response.rcode, rcode, `${name}: rcode`)
    t.equal(status, Rcode.NOERROR, `${name}: status`)
    t.equal(response.isCompact, compactOk === true, `${name}: CO`)
  }
})

t.test('signatures of a name are those of its NSEC record', async (t) => {
  const key = await writeKey(temporaryDirectory(t), 'example.org.')
  const c = await start(t, [key])
  for (const rcode of [Rcode.NOERROR, Rcode.NXDOMAIN]) {
    const handler = c.handler(source({ rcode, authority: [SOA] }))
    const { response } = ask(handler, { name: 'a.example.org.', type: RRType.RRSIG })
    t.equal(response.rcode, Rcode.NOERROR)
    const { section, type, rdataBytes, rdataOffset, count } = response
    const types = [...type.slice(0, count)]
    const answer = types.flatMap((one, i) => {
      if (section[i] !== Section.Answer) return []
      return [[one, coveredType(rdataBytes[i]!.subarray(rdataOffset[i]))]]
    })
    t.strictSame(answer, [[RRType.RRSIG, RRType.NSEC]])
    t.notOk(types.includes(RRType.NSEC))
  }
})
