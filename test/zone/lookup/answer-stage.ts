import type { Test } from 'tap'
import { scanType } from '../../../src/dns/iana/types.ts'
import { Response } from '../../../src/dns/message/response.ts'
import { type AnswerOptions, AnswerStatus, ZoneAnswerer } from '../../../src/zone/lookup/answer.ts'
import type { Steerer } from '../../../src/zone/lookup/steerer.ts'
import { type imageOf, linesOf, sections } from '../../support/zone-lines.ts'
import { question, text } from '../../support/zone-names.ts'

export const ZONES = [
  'example.org. 3600 SOA 60',
  'example.org. 300 NS ns1.example.org.',
  'example.org. 300 NS ns.example.net.',
  'ns1.example.org. 300 A 192.0.2.53',
  'example.org. 300 MX 10 mail.example.org.',
  'example.org. 300 MX 20 mail.example.com.',
  'example.org. 300 MX 30 mail.example.net.',
  'mail.example.org. 300 A 192.0.2.25',
  'mail.example.org. 300 AAAA 32 1',
  '_sip._tcp.example.org. 300 SRV 0 5 5060 mail.example.org.',
  '_sip._tcp.example.org. 300 SRV 0 5 5061 mail.example.org.',
  'mail.example.org. 300 HTTPS 1 .',
  'alias.example.org. 300 HTTPS 0 .',
  'alias.example.org. 300 A 192.0.2.26',
  // Aliases of services, RFC 9460 section 2.4.2.
  'svc1.example.org. 300 HTTPS 0 svc2.example.org.',
  'svc2.example.org. 300 HTTPS 0 pool.example.com.',
  'svc2.example.org. 300 SVCB 1 mail.example.org.',
  'svc2.example.org. 300 A 192.0.2.27',
  'pool.example.com. 300 HTTPS 1 mail.example.org.',
  'pool.example.com. 300 HTTPS 2 .',
  'pool.example.com. 300 A 198.51.100.27',
  'service.example.org. 300 HTTPS 1 svc2.example.org.',
  'ring1.example.org. 300 SVCB 0 ring2.example.org.',
  'ring2.example.org. 300 SVCB 0 ring1.example.org.',
  'towild.example.org. 300 HTTPS 0 x.wild.example.org.',
  'null.example.org. 300 MX 0 .',
  'a.ent.example.org. 300 A 192.0.2.1',
  // Wildcards, as in RFC 4592 section 2.2.1.
  '*.wild.example.org. 300 A 192.0.2.2',
  'sub.*.wild.example.org. 300 A 192.0.2.3',
  'host.wild.example.org. 300 A 192.0.2.4',
  'x.ent.wild.example.org. 300 A 192.0.2.5',
  '*.cwild.example.org. 300 CNAME host.wild.example.org.',
  'a.*.entwild.example.org. 300 A 192.0.2.6',
  // A cut with glue, a DS, and data that it hides.
  'child.example.org. 300 NS ns.child.example.org.',
  'child.example.org. 300 NS ns1.example.org.',
  'child.example.org. 300 DS 1 2 3',
  'child.example.org. 300 A 192.0.2.7',
  'ns.child.example.org. 300 A 192.0.2.8',
  'below.child.example.org. 300 A 192.0.2.9',
  // CNAMEs.
  'www.example.org. 300 CNAME host.example.org.',
  'host.example.org. 300 A 192.0.2.10',
  'cross.example.org. 300 CNAME www.example.com.',
  'out.example.org. 300 CNAME www.example.net.',
  'dangling.example.org. 300 CNAME nowhere.example.com.',
  'tochild.example.org. 300 CNAME below.child.example.org.',
  'loop1.example.org. 300 CNAME loop2.example.org.',
  'loop2.example.org. 300 CNAME loop1.example.org.',
  'self.example.org. 300 CNAME self.example.org.',
  ...Array.from({ length: 17 }, (_, i) => `c${i}.example.org. 300 CNAME c${i + 1}.example.org.`),
  'c17.example.org. 300 A 192.0.2.11',
  // DNAMEs.
  'old.example.org. 120 DNAME new.example.org.',
  'old.example.org. 300 A 192.0.2.12',
  'hidden.old.example.org. 300 A 192.0.2.13',
  'www.new.example.org. 300 A 192.0.2.14',
  // Names of maximum length at each step.
  ...Array.from(
    { length: 18 },
    (_, i) => `d${10 + i}.example.org. 300 DNAME d${11 + i}.example.org.`,
  ),
  `long.example.org. 300 DNAME ${`${'x'.repeat(60)}.`.repeat(3)}example.org.`,
  'example.com. 30 SOA 90',
  'example.com. 300 NS ns1.example.org.',
  'www.example.com. 300 A 198.51.100.1',
  'mail.example.com. 300 A 198.51.100.25',
  // A child zone in the same image, with a DS in its parent.
  'sub.example.com. 300 DS 4 5 6',
  'sub.example.com. 300 SOA 50',
]

export const { Answered, NotInZone, ChaseOutside, ChainTooLong } = AnswerStatus
export const SOA_ORG = 'example.org. 60 SOA 60'

export interface Case {
  readonly name: string
  readonly given: string
  /** Answer, authority, additional. */
  readonly want: readonly (readonly string[])[]
  readonly rcode?: number
  readonly status?: AnswerStatus
  readonly authoritative?: boolean
  readonly target?: string
}

/** Steering words are: count of indexes, the indexes. TTL 7. */
export const steerer: Steerer = {
  choose(_query, response, words, offset, choice) {
    response.scopeBits = 24
    choice.count = words[offset]!
    choice.ttlSeconds = 7
    for (let i = 0; i < choice.count; i++) choice.index[i] = words[offset + 1 + i]!
  },
}

export function run(
  t: Test,
  image: Pick<ReturnType<typeof imageOf>, 'reader'>,
  options: AnswerOptions,
  c: Case,
): void {
  const answerer = new ZoneAnswerer(image.reader(), steerer, options)
  const [qname, type] = c.given.split(' ')
  const query = question(qname!, scanType(type!)!)
  const response = new Response()
  response.reset(query)
  t.equal(answerer.answer(query, response), c.status ?? Answered, 'status')
  t.same(
    sections.map((section) => linesOf(response, section)),
    c.want,
  )
  t.equal(response.rcode, c.rcode ?? 0, 'rcode')
  t.equal(response.authoritative, c.authoritative ?? true, 'AA')
  if (c.target !== undefined) {
    t.equal(text(answerer.chaseTarget), c.target)
    t.equal(answerer.chaseTargetOctets, c.target.length + 1)
  }
}
