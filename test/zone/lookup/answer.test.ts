import t from 'tap'
import { Response } from '../../../src/dns/message/response.ts'
import { ZoneReader } from '../../../src/zone/image/reader.ts'
import { ZoneAnswerer } from '../../../src/zone/lookup/answer.ts'
import { imageOf, linesOf } from '../../support/zone-lines.ts'
import { question } from '../../support/zone-names.ts'
import {
  Answered,
  type Case,
  ChainTooLong,
  ChaseOutside,
  NotInZone,
  run,
  SOA_ORG,
  ZONES,
} from './answer-stage.ts'

/** With `dNN.example.org.` a name of 255 octets. */
const LONG = `${`${'x'.repeat(63)}.`.repeat(3)}${'y'.repeat(45)}.`

const SOA_COM = 'example.com. 30 SOA 90'

const CHILD_NS = [
  'child.example.org. 300 NS ns.child.example.org.',
  'child.example.org. 300 NS ns1.example.org.',
]
const CHILD_GLUE = ['ns.child.example.org. 300 A 192.0.2.8', 'ns1.example.org. 300 A 192.0.2.53']

const cases: readonly Case[] = [
  {
    name: 'an existing RRset is answered with authority',
    given: 'host.example.org. A',
    want: [['host.example.org. 300 A 192.0.2.10'], [], []],
  },
  {
    name: 'a name outside all zones leaves the response alone',
    given: 'www.example.net. A',
    status: NotInZone,
    authoritative: false,
    want: [[], [], []],
  },
  {
    name: 'the SOA of the apex keeps its own TTL',
    given: 'example.org. SOA',
    want: [['example.org. 3600 SOA 60'], [], []],
  },
  {
    name: 'NS of the apex is an answer, with the addresses that we have',
    given: 'example.org. NS',
    want: [
      ['example.org. 300 NS ns1.example.org.', 'example.org. 300 NS ns.example.net.'],
      [],
      ['ns1.example.org. 300 A 192.0.2.53'],
    ],
  },
  {
    name: 'MX brings addresses from all our zones',
    given: 'example.org. MX',
    want: [
      [
        'example.org. 300 MX 10 mail.example.org.',
        'example.org. 300 MX 20 mail.example.com.',
        'example.org. 300 MX 30 mail.example.net.',
      ],
      [],
      [
        'mail.example.org. 300 A 192.0.2.25',
        'mail.example.org. 300 AAAA 32 1',
        'mail.example.com. 300 A 198.51.100.25',
      ],
    ],
  },
  {
    name: 'two SRV of one target bring its addresses once',
    given: '_sip._tcp.example.org. SRV',
    want: [
      [
        '_sip._tcp.example.org. 300 SRV 0 5 5060 mail.example.org.',
        '_sip._tcp.example.org. 300 SRV 0 5 5061 mail.example.org.',
      ],
      [],
      ['mail.example.org. 300 A 192.0.2.25', 'mail.example.org. 300 AAAA 32 1'],
    ],
  },
  {
    name: 'the target . of a service is its owner',
    given: 'mail.example.org. HTTPS',
    want: [
      ['mail.example.org. 300 HTTPS 1 .'],
      [],
      ['mail.example.org. 300 A 192.0.2.25', 'mail.example.org. 300 AAAA 32 1'],
    ],
  },
  {
    name: 'the target . of an alias is none',
    given: 'alias.example.org. HTTPS',
    want: [['alias.example.org. 300 HTTPS 0 .'], [], []],
  },
  {
    name: 'an alias of a service brings the service of its target, and what that leads to',
    given: 'svc1.example.org. HTTPS',
    want: [
      ['svc1.example.org. 300 HTTPS 0 svc2.example.org.'],
      [],
      [
        'svc2.example.org. 300 HTTPS 0 pool.example.com.',
        'svc2.example.org. 300 A 192.0.2.27',
        'pool.example.com. 300 HTTPS 1 mail.example.org.',
        'pool.example.com. 300 HTTPS 2 .',
        'pool.example.com. 300 A 198.51.100.27',
        'mail.example.org. 300 A 192.0.2.25',
        'mail.example.org. 300 AAAA 32 1',
      ],
    ],
  },
  {
    name: 'the target of a service is not an alias: clients ask only for its addresses',
    given: 'service.example.org. HTTPS',
    want: [
      ['service.example.org. 300 HTTPS 1 svc2.example.org.'],
      [],
      ['svc2.example.org. 300 A 192.0.2.27'],
    ],
  },
  {
    name: 'a loop of aliases of services ends',
    given: 'ring1.example.org. SVCB',
    want: [
      ['ring1.example.org. 300 SVCB 0 ring2.example.org.'],
      [],
      ['ring2.example.org. 300 SVCB 0 ring1.example.org.'],
    ],
  },
  {
    name: 'an alias to a name that a wildcard matches brings nothing',
    given: 'towild.example.org. HTTPS',
    want: [['towild.example.org. 300 HTTPS 0 x.wild.example.org.'], [], []],
  },
  {
    name: 'a null MX brings nothing',
    given: 'null.example.org. MX',
    want: [['null.example.org. 300 MX 0 .'], [], []],
  },
  {
    name: 'another type of an existing name is NODATA, the SOA TTL cut to MINIMUM',
    given: 'host.example.org. AAAA',
    want: [[], [SOA_ORG], []],
  },
  {
    name: 'the SOA TTL stays where it is below MINIMUM',
    given: 'www.example.com. AAAA',
    want: [[], [SOA_COM], []],
  },
  {
    name: 'a name that does not exist is NXDOMAIN',
    given: 'nowhere.example.org. A',
    rcode: 3,
    want: [[], [SOA_ORG], []],
  },
  {
    name: 'a name far below one without children is NXDOMAIN',
    given: 'a.b.c.d.host.example.org. A',
    rcode: 3,
    want: [[], [SOA_ORG], []],
  },
  {
    name: 'an empty non-terminal is NODATA',
    given: 'ent.example.org. A',
    want: [[], [SOA_ORG], []],
  },
  {
    name: 'a wildcard stands in for a name, also several labels up',
    given: 'q.r.wild.example.org. A',
    want: [['q.r.wild.example.org. 300 A 192.0.2.2'], [], []],
  },
  {
    name: 'a wildcard without the type is NODATA',
    given: 'q.wild.example.org. AAAA',
    want: [[], [SOA_ORG], []],
  },
  {
    name: 'a wildcard asked for by its own name is itself',
    given: '*.wild.example.org. A',
    want: [['*.wild.example.org. 300 A 192.0.2.2'], [], []],
  },
  {
    name: 'an existing name hides the wildcard',
    given: 'host.wild.example.org. AAAA',
    want: [[], [SOA_ORG], []],
  },
  {
    name: 'an empty non-terminal hides the wildcard',
    given: 'ent.wild.example.org. A',
    want: [[], [SOA_ORG], []],
  },
  {
    name: 'below an existing name the wildcard above it does not reach',
    given: 'q.host.wild.example.org. A',
    rcode: 3,
    want: [[], [SOA_ORG], []],
  },
  {
    name: 'a name below a wildcard is an ordinary name',
    given: 'sub.*.wild.example.org. A',
    want: [['sub.*.wild.example.org. 300 A 192.0.2.3'], [], []],
  },
  {
    name: 'a wildcard that is an empty non-terminal gives NODATA',
    given: 'q.entwild.example.org. A',
    want: [[], [SOA_ORG], []],
  },
  {
    name: 'a CNAME of a wildcard is followed',
    given: 'q.cwild.example.org. A',
    want: [
      [
        'q.cwild.example.org. 300 CNAME host.wild.example.org.',
        'host.wild.example.org. 300 A 192.0.2.4',
      ],
      [],
      [],
    ],
  },
  {
    name: 'a cut refers, with glue and without authority',
    given: 'child.example.org. A',
    authoritative: false,
    want: [[], CHILD_NS, CHILD_GLUE],
  },
  {
    name: 'NS of a cut is a referral, too',
    given: 'child.example.org. NS',
    authoritative: false,
    want: [[], CHILD_NS, CHILD_GLUE],
  },
  {
    name: 'ANY of a cut is a referral, too',
    given: 'child.example.org. ANY',
    authoritative: false,
    want: [[], CHILD_NS, CHILD_GLUE],
  },
  {
    name: 'data below a cut is never answered',
    given: 'below.child.example.org. A',
    authoritative: false,
    want: [[], CHILD_NS, CHILD_GLUE],
  },
  {
    name: 'names below a cut that we do not know are referred, not denied',
    given: 'x.y.child.example.org. DS',
    authoritative: false,
    want: [[], CHILD_NS, CHILD_GLUE],
  },
  {
    name: 'DS of a cut is the parent side',
    given: 'child.example.org. DS',
    want: [['child.example.org. 300 DS 1 2 3'], [], []],
  },
  {
    name: 'DS of a zone whose parent we serve comes from the parent',
    given: 'sub.example.com. DS',
    want: [['sub.example.com. 300 DS 4 5 6'], [], []],
  },
  {
    name: 'DS of a zone whose parent we do not serve is NODATA of the zone',
    given: 'example.org. DS',
    want: [[], [SOA_ORG], []],
  },
  {
    name: 'a CNAME is followed inside its zone',
    given: 'www.example.org. A',
    want: [
      ['www.example.org. 300 CNAME host.example.org.', 'host.example.org. 300 A 192.0.2.10'],
      [],
      [],
    ],
  },
  {
    name: 'a CNAME is not followed when it is asked for',
    given: 'www.example.org. CNAME',
    want: [['www.example.org. 300 CNAME host.example.org.'], [], []],
  },
  {
    name: 'ANY of a CNAME is the CNAME',
    given: 'www.example.org. ANY',
    want: [['www.example.org. 300 CNAME host.example.org.'], [], []],
  },
  {
    name: 'ANY is one RRset, of the lowest type',
    given: 'mail.example.org. ANY',
    want: [['mail.example.org. 300 A 192.0.2.25'], [], []],
  },
  {
    name: 'ANY of an empty non-terminal is NODATA',
    given: 'ent.example.org. ANY',
    want: [[], [SOA_ORG], []],
  },
  {
    name: 'a CNAME is followed into another zone of ours',
    given: 'cross.example.org. A',
    want: [
      ['cross.example.org. 300 CNAME www.example.com.', 'www.example.com. 300 A 198.51.100.1'],
      [],
      [],
    ],
  },
  {
    name: 'NODATA at the end of a chain has the SOA of the last zone',
    given: 'cross.example.org. AAAA',
    want: [['cross.example.org. 300 CNAME www.example.com.'], [SOA_COM], []],
  },
  {
    name: 'NXDOMAIN at the end of a chain is the rcode (RFC 6604)',
    given: 'dangling.example.org. A',
    rcode: 3,
    want: [['dangling.example.org. 300 CNAME nowhere.example.com.'], [SOA_COM], []],
  },
  {
    name: 'a chain that leaves our zones says where to',
    given: 'out.example.org. A',
    status: ChaseOutside,
    target: 'www.example.net.',
    want: [['out.example.org. 300 CNAME www.example.net.'], [], []],
  },
  {
    name: 'a chain that ends below a cut refers, with authority for the CNAME',
    given: 'tochild.example.org. A',
    want: [['tochild.example.org. 300 CNAME below.child.example.org.'], CHILD_NS, CHILD_GLUE],
  },
  {
    name: 'a loop ends with each CNAME once',
    given: 'loop1.example.org. A',
    status: ChainTooLong,
    want: [
      [
        'loop1.example.org. 300 CNAME loop2.example.org.',
        'loop2.example.org. 300 CNAME loop1.example.org.',
      ],
      [],
      [],
    ],
  },
  {
    name: 'a CNAME to itself is SERVFAIL',
    given: 'self.example.org. A',
    status: ChainTooLong,
    rcode: 2,
    want: [['self.example.org. 300 CNAME self.example.org.'], [], []],
  },
  {
    name: 'a chain of sixteen CNAMEs is followed to its end',
    given: 'c1.example.org. A',
    want: [
      [
        ...Array.from(
          { length: 16 },
          (_, i) => `c${i + 1}.example.org. 300 CNAME c${i + 2}.example.org.`,
        ),
        'c17.example.org. 300 A 192.0.2.11',
      ],
      [],
      [],
    ],
  },
  {
    name: 'the seventeenth CNAME is given, but not followed',
    given: 'c0.example.org. A',
    status: ChainTooLong,
    want: [
      Array.from({ length: 17 }, (_, i) => `c${i}.example.org. 300 CNAME c${i + 1}.example.org.`),
      [],
      [],
    ],
  },
  {
    name: 'a chain of DNAMEs has room for names of maximum length',
    given: `${LONG}d10.example.org. A`,
    status: ChainTooLong,
    want: [
      Array.from({ length: 17 }, (_, i) => [
        `d${10 + i}.example.org. 300 DNAME d${11 + i}.example.org.`,
        `${LONG}d${10 + i}.example.org. 300 CNAME ${LONG}d${11 + i}.example.org.`,
      ]).flat(),
      [],
      [],
    ],
  },
  {
    name: 'DNAME redirects what is below it, by a CNAME of its own TTL',
    given: 'www.old.example.org. A',
    want: [
      [
        'old.example.org. 120 DNAME new.example.org.',
        'www.old.example.org. 120 CNAME www.new.example.org.',
        'www.new.example.org. 300 A 192.0.2.14',
      ],
      [],
      [],
    ],
  },
  {
    name: 'the owner of a DNAME answers for itself',
    given: 'old.example.org. A',
    want: [['old.example.org. 300 A 192.0.2.12'], [], []],
  },
  {
    name: 'data below a DNAME is never answered',
    given: 'hidden.old.example.org. A',
    rcode: 3,
    want: [
      [
        'old.example.org. 120 DNAME new.example.org.',
        'hidden.old.example.org. 120 CNAME hidden.new.example.org.',
      ],
      [SOA_ORG],
      [],
    ],
  },
  {
    name: 'a CNAME made from a DNAME answers a question for CNAME',
    given: 'www.old.example.org. CNAME',
    want: [
      [
        'old.example.org. 120 DNAME new.example.org.',
        'www.old.example.org. 120 CNAME www.new.example.org.',
      ],
      [],
      [],
    ],
  },
  {
    name: 'a substitution that is too long is YXDOMAIN, with the DNAME',
    given: `${'y'.repeat(60)}.long.example.org. A`,
    rcode: 6,
    want: [[`long.example.org. 300 DNAME ${`${'x'.repeat(60)}.`.repeat(3)}example.org.`], [], []],
  },
]

t.test('answers by RFC 1034 section 4.3.2', async (t) => {
  const image = imageOf(ZONES)
  for (const c of cases) t.test(c.name, async (t) => run(t, image, {}, c))
})

t.test('a finished image answers the same, to its last octet', async (t) => {
  const buffer = imageOf(ZONES).finish()
  t.notOk(buffer.growable)
  const image = { reader: () => new ZoneReader({ buffer }) }
  for (const c of cases) t.test(c.name, async (t) => run(t, image, {}, c))
})

t.test('steps that were taken before count', async (t) => {
  const answerer = new ZoneAnswerer(imageOf(ZONES).reader())
  const response = new Response()
  const query = question('c14.example.org.', 1)
  t.equal(answerer.answer(query, response, 13), Answered)
  response.reset(query)
  t.equal(answerer.answer(query, response, 14), ChainTooLong)
  t.equal(answerer.chainSteps, 2)
})

t.test('records of one answer stay when the same answerer gives the next', async (t) => {
  const answerer = new ZoneAnswerer(imageOf(ZONES).reader())
  const [first, second] = [new Response(), new Response()]
  const query = question('www.old.example.org.', 1)
  answerer.answer(query, first)
  const before = linesOf(first, 0)
  answerer.answer(question('hidden.old.example.org.', 1), second)
  answerer.answer(question('cross.example.org.', 1), second)
  t.same(linesOf(first, 0), before)
})

t.test('an answerer has no buffers of its own: a server may have very many zones', async (t) => {
  const reader = imageOf(ZONES).reader()
  const before = process.memoryUsage().arrayBuffers
  const answerers = Array.from({ length: 1000 }, () => new ZoneAnswerer(reader))
  const octets = (process.memoryUsage().arrayBuffers - before) / answerers.length
  t.ok(octets < 64, `${octets} octets each`)
})

t.test('a zone at the root answers for everything', async (t) => {
  const answerer = new ZoneAnswerer(imageOf(['. 60 SOA 60', 'org. 60 NS a.org.']).reader())
  const response = new Response()
  t.equal(answerer.answer(question('.', 6), response), Answered)
  t.same(linesOf(response, 0), ['. 60 SOA 60'])
  response.reset(question('.', 6))
  answerer.answer(question('example.org.', 1), response)
  t.same(linesOf(response, 1), ['org. 60 NS a.org.'])
})
