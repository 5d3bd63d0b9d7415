import t from 'tap'
import { Rcode, RRType } from '../../src/dns/iana/index.ts'
import { Section } from '../../src/dns/message/section.ts'
import type { Question } from '../support/transaction.ts'
import { wire } from '../support/zone-names.ts'
import { codeOf, type Fill, failure, QUESTION, start } from './fixture.ts'

/** A record of a reply; the TTL is 60. */
interface Given {
  readonly owner: string
  readonly type: number
  readonly rdata: Uint8Array
  readonly section?: Section
}

const cname = (owner: string, target: string): Given => {
  return { owner, type: RRType.CNAME, rdata: wire(target) }
}
const a = (owner: string): Given => ({ owner, type: RRType.A, rdata: Uint8Array.of(192, 0, 2, 1) })
const mx = (owner: string): Given => {
  return { owner, type: RRType.MX, rdata: Uint8Array.of(0, 10, ...wire('mail.example.')) }
}
const SOA: Given = {
  owner: 'example.',
  type: RRType.SOA,
  rdata: Uint8Array.of(...wire('ns.'), ...wire('a.'), ...new Array(19).fill(0), 60),
  section: Section.Authority,
}
const NS: Given = {
  owner: 'example.',
  type: RRType.NS,
  rdata: wire('ns.'),
  section: Section.Authority,
}
/** The clock of the fixture starts at this Unix time. */
const START_SECONDS = 1_800_000_000
const rrsig = (fromSeconds: number, toSeconds: number, section?: Section): Given => {
  const rdata = new Uint8Array(18 + 9 + 8)
  const view = new DataView(rdata.buffer)
  view.setUint32(8, START_SECONDS + toSeconds)
  view.setUint32(12, START_SECONDS + fromSeconds)
  rdata.set(wire('example.'), 18)
  return { owner: 'www.example.', type: RRType.RRSIG, rdata, section: section ?? Section.Answer }
}

const reply =
  (records: readonly Given[], rcode: number): Fill =>
  ({ response }) => {
    response.rcode = rcode
    for (const { owner, type, rdata, section = Section.Answer } of records) {
      response.add(section, wire(owner), 0, type, 1, 60, rdata, 0, rdata.length)
    }
    return rcode
  }

const CHAIN = [cname('www.example.', 'a.example.'), cname('a.example.', 'b.example.')]

t.test('which replies are cached', async (t) => {
  const table: {
    name: string
    records: readonly Given[]
    rcode?: number
    question?: Partial<Question>
    /** Seconds that the reply is cached. */
    kept: number
  }[] = [
    { name: 'a chain and its end', records: [...CHAIN, a('b.example.')], kept: 60 },
    {
      name: 'a chain in another order',
      records: [a('B.example.'), CHAIN[1]!, CHAIN[0]!],
      kept: 60,
    },
    { name: 'a CNAME twice', records: [...CHAIN, CHAIN[1]!, a('b.example.')], kept: 60 },
    { name: 'a chain without its end', records: CHAIN, kept: 0 },
    { name: 'a chain without its end, with NS', records: [...CHAIN, NS], kept: 0 },
    { name: 'a chain to a name that has no data, with SOA', records: [...CHAIN, SOA], kept: 60 },
    {
      name: 'a chain to a name that does not exist',
      records: [...CHAIN, SOA],
      rcode: Rcode.NXDOMAIN,
      kept: 60,
    },
    {
      name: 'the same without SOA',
      records: CHAIN,
      rcode: Rcode.NXDOMAIN,
      kept: 0,
    },
    {
      name: 'NXDOMAIN with the data that it denies',
      records: [...CHAIN, a('b.example.'), SOA],
      rcode: Rcode.NXDOMAIN,
      kept: 0,
    },
    { name: 'another type at the end', records: [...CHAIN, mx('b.example.')], kept: 0 },
    { name: 'another type, with SOA', records: [...CHAIN, mx('b.example.'), SOA], kept: 60 },
    { name: 'another type at the name', records: [mx('www.example.')], kept: 0 },
    { name: 'another owner', records: [a('other.example.')], kept: 0 },
    { name: 'an owner that is not the end', records: [...CHAIN, a('a.example.')], kept: 0 },
    {
      name: 'a loop',
      records: [...CHAIN, cname('b.example.', 'www.example.'), a('b.example.')],
      kept: 0,
    },
    {
      name: 'a loop, with SOA',
      records: [...CHAIN, cname('b.example.', 'a.example.'), SOA],
      kept: 0,
    },
    { name: 'a CNAME to itself', records: [cname('www.example.', 'www.example.')], kept: 0 },
    {
      name: 'two CNAMEs',
      records: [CHAIN[0]!, cname('www.example.', 'b.example.'), a('a.example.')],
      kept: 0,
    },
    {
      name: 'two CNAMEs, NXDOMAIN',
      records: [...CHAIN, cname('www.example.', 'b.example.'), SOA],
      rcode: Rcode.NXDOMAIN,
      kept: 0,
    },
    {
      name: 'a CNAME that was asked for',
      records: CHAIN.slice(0, 1),
      question: { type: RRType.CNAME },
      kept: 60,
    },
    {
      name: 'the CNAME of another name that was asked for',
      records: CHAIN.slice(1),
      question: { type: RRType.CNAME },
      kept: 0,
    },
    {
      name: 'two CNAMEs that were asked for',
      records: [CHAIN[0]!, cname('www.example.', 'b.example.')],
      question: { type: RRType.CNAME },
      kept: 0,
    },
    { name: 'nothing', records: [], kept: 0 },
    { name: 'a referral', records: [NS], kept: 60 },
    {
      name: 'a signature that is valid',
      records: [a('www.example.'), rrsig(-10, 90)],
      question: { dnssecOk: true },
      kept: 60,
    },
    {
      name: 'a signature that expires before the TTL',
      records: [a('www.example.'), rrsig(-10, 30), rrsig(-10, 90)],
      question: { dnssecOk: true },
      kept: 30,
    },
    {
      name: 'a signature that expires before the minimum TTL',
      records: [a('www.example.'), rrsig(-10, 2)],
      question: { dnssecOk: true },
      kept: 2,
    },
    {
      name: 'a signature that has expired',
      records: [a('www.example.'), rrsig(-10, 90), rrsig(-10, -1)],
      question: { dnssecOk: true },
      kept: 0,
    },
    {
      name: 'a signature of a denial that has expired',
      records: [SOA, rrsig(-10, -1, Section.Authority)],
      rcode: Rcode.NXDOMAIN,
      question: { dnssecOk: true },
      kept: 0,
    },
    {
      name: 'a signature that is not valid yet',
      records: [a('www.example.'), rrsig(10, 90)],
      question: { dnssecOk: true },
      kept: 0,
    },
    {
      name: 'an expired signature that was asked for as data',
      records: [rrsig(-10, -1)],
      question: { type: RRType.RRSIG },
      kept: 60,
    },
  ]
  for (const { name, records, rcode = Rcode.NOERROR, question = {}, kept } of table) {
    const over = { ...QUESTION, ...question, ...(question.dnssecOk ? { payloadOctets: 1232 } : {}) }
    const { ask, asked } = start({}, reply(records, rcode))
    await ask(0, over)
    await ask(Math.max(0, kept - 0.5), over)
    t.equal(asked(), kept === 0 ? 2 : 1, `${name}: kept ${kept} s`)
    await ask(kept, over)
    t.equal(asked(), kept === 0 ? 3 : 2, `${name}: no longer`)
  }
})

t.test('a reply that is not cached leaves what may be used stale', async (t) => {
  const stale = { staleSeconds: 3600, verifiesStale: true }
  const dangling = reply(CHAIN, Rcode.NOERROR)
  const { ask } = start(stale, reply([a('www.example.')], Rcode.NOERROR), dangling, () => 2)
  await ask(0)
  t.match((await ask(100)).answer, { length: 2 }, 'the client gets what the server answers')
  t.match((await ask(101)).answer, { length: 1 }, 'the earlier answer')
})

t.test('AD is for clients that ask for it: RFC 6840 section 5.8', async (t) => {
  const authentic: Fill = (tx) => {
    tx.response.authenticData = true
    return reply([a('www.example.')], Rcode.NOERROR)(tx)
  }
  const table: { name: string; question: Partial<Question>; want: string }[] = [
    { name: 'neither DO nor AD', question: {}, want: 'rd' },
    { name: 'AD', question: { authenticData: true }, want: 'ad rd' },
    { name: 'DO', question: { dnssecOk: true, payloadOctets: 1232 }, want: 'ad rd' },
  ]
  for (const { name, question, want } of table) {
    const { ask, asked } = start({}, authentic)
    t.equal((await ask(0, question)).flags, want, `${name}: fresh`)
    t.equal((await ask(1, question)).flags, want, `${name}: from the cache`)
    t.equal(asked(), 1)
  }
  const { ask, asked } = start({}, authentic)
  await ask(0)
  t.equal((await ask(1, { authenticData: true })).flags, 'ad rd', 'what is stored keeps AD')
  t.equal(asked(), 1)
})

t.test('an expired answer is used while its signatures are valid', async (t) => {
  const signed = reply([a('www.example.'), rrsig(-100, 100)], Rcode.NOERROR)
  for (const verifiesStale of [false, true]) {
    const { ask, asked } = start({ staleSeconds: 3600, verifiesStale }, signed, signed, failure)
    const dnssecOk = { dnssecOk: true, payloadOctets: 1232 }
    await ask(0)
    await ask(0, dnssecOk)
    t.match((await ask(80, dnssecOk)).answer[0], / 0 /)
    t.equal(codeOf(await ask(120, dnssecOk)), 'SERVFAIL')
    const requests = asked()
    t.equal(codeOf(await ask(121, dnssecOk)), 'SERVFAIL')
    t.equal(asked(), requests, 'the failure is cached')
    t.match((await ask(122)).answer[0], / 0 /, 'a client without DO gets no signature to validate')
  }
})
