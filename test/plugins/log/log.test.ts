import t from 'tap'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { Section } from '../../../src/dns/message/section.ts'
import { COMBINED_FORMAT } from '../../../src/plugins/log/format.ts'
import { log } from '../../../src/plugins/log/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'
import { answering, type Question, transaction } from '../../support/transaction.ts'

const { Answer, Authority } = Section

/** Answers with one record and returns the rcode. */
function reply(rcode: number, section?: Section, type: number = RRType.A, late = false) {
  return answering((tx) => {
    const { response, query } = tx
    if (section !== undefined) {
      response.add(section, query.qname, 0, type, RRClass.IN, 60, new Uint8Array(4), 0, 4)
    }
    response.authoritative = true
    response.rcode = Math.max(0, rcode)
    return rcode
  }, late)
}

const question: Question = {
  name: 'WWW.example.org.',
  from: '192.0.2.1',
  port: 50759,
  recursionDesired: true,
  startedMs: 1000,
}

async function lines(corefile: string, asked: Question = question, below = reply(0, Answer)) {
  const setUp = new SetUp(log, corefile)
  setUp.clock.monotonicMs = 1000.037990251
  await setUp.handler(below).serve(transaction(asked))
  return setUp.lines
}

t.test('the common format, as CoreDNS prints it', async (t) => {
  const table: { name: string; given: Question; below?: ReturnType<typeof reply>; want: string }[] =
    [
      {
        name: 'an answer over UDP without EDNS',
        given: question,
        want: '192.0.2.1:50759 - 4660 "A IN www.example.org. udp 33 false 512" NOERROR qr,aa,rd 64 0.00003799s',
      },
      {
        name: 'EDNS and DO',
        given: { ...question, payloadOctets: 4096, dnssecOk: true },
        want: '192.0.2.1:50759 - 4660 "A IN www.example.org. udp 44 true 4096" NOERROR qr,aa,rd 75 0.00003799s',
      },
      {
        name: 'IPv6 in brackets, TCP takes everything',
        given: { ...question, from: '2001:db8::1', tcp: true, type: 65280 },
        want: '[2001:db8::1]:50759 - 4660 "TYPE65280 IN www.example.org. tcp 33 false 65535" NOERROR qr,aa,rd 64 0.00003799s',
      },
      {
        name: 'a late answer',
        given: question,
        below: reply(Rcode.NXDOMAIN, undefined, 0, true),
        want: '192.0.2.1:50759 - 4660 "A IN www.example.org. udp 33 false 512" NXDOMAIN qr,aa,rd 33 0.00003799s',
      },
      {
        name: 'a bare error shows what the client gets',
        given: question,
        below: reply(Rcode.SERVFAIL, Answer),
        want: '192.0.2.1:50759 - 4660 "A IN www.example.org. udp 33 false 512" SERVFAIL qr,rd 33 0.00003799s',
      },
      {
        name: 'silence',
        given: question,
        below: reply(-1),
        want: '192.0.2.1:50759 - 4660 "A IN www.example.org. udp 33 false 512" - - 0 0.00003799s',
      },
    ]
  for (const { name, given, below, want } of table) {
    t.strictSame(await lines('log', given, below), [`[INFO] ${want}`], name)
  }
})

t.test('formats', async (t) => {
  const table = [
    { given: 'log . {combined}', want: /0\.00003799s "0"$/ },
    { given: 'log . {common}', want: /0\.00003799s$/ },
    {
      given: 'log . "{common} {local}"',
      want: /^\[INFO\] 192\.0\.2\.1:.* 0\.00003799s 127\.0\.0\.53$/,
    },
    { given: 'log . "{local} {combined} {combined}"', want: /^\[INFO\] 127.* "0" 192.* "0"$/ },
    { given: 'log . "{remote} {local}"', want: /^\[INFO\] 192\.0\.2\.1 127\.0\.0\.53$/ },
    { given: 'log . "{ {name} }"', want: /^\[INFO\] \{ www\.example\.org\. \}$/ },
    { given: 'log . "{unknown} }{type}{"', want: /^\[INFO\] \{unknown\} \}A\{$/ },
    { given: 'log . "{/geoip/country/code} {type}"', want: /^\[INFO\] - A$/ },
  ]
  for (const { given, want } of table) t.match((await lines(given))[0], want, given)
})

t.test('texts that are kept are not mixed up, whatever comes in turns', async (t) => {
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < 100; i++) {
      const payloadOctets = 512 + 13 * i
      const given = { ...question, payloadOctets, dnssecOk: i % 3 === 0 }
      const rcode = [Rcode.NOERROR, Rcode.NXDOMAIN, Rcode.SERVFAIL, -1][i % 4]!
      const [line] = await lines('log', given, reply(rcode, Answer))
      const sent = ['NOERROR qr,aa,rd', 'NXDOMAIN qr,aa,rd', 'SERVFAIL qr,rd', '- -'][i % 4]
      const want = ` ${given.dnssecOk} ${payloadOctets}" ${sent} `
      t.ok(line?.includes(want), `${line} has ${want}`)
    }
  }
})

t.test('the common format prints what its fields print one by one', async (t) => {
  const asked: Question[] = [
    question,
    { ...question, from: '2001:db8::1', tcp: true, type: 65280, payloadOctets: 1232 },
    { name: '.', from: '255.255.255.255', port: 65535, type: RRType.SOA, dnssecOk: true },
    { name: 'a\\.b\\010.example.org.', from: '0.0.0.0', port: 0, payloadOctets: 65535 },
  ]
  const below = [reply(0, Answer), reply(Rcode.NXDOMAIN), reply(Rcode.REFUSED), reply(-1)]
  for (const one of asked) {
    for (const handler of below) {
      const [given] = await lines('log . {combined}', one, handler)
      // Text in front: no longer the format that is known as a whole.
      const [want] = await lines(`log . "|${COMBINED_FORMAT.replaceAll('"', '\\"')}"`, one, handler)
      t.equal(given, want?.replace('|', ''))
    }
  }
})

t.test('metadata, where the block has it', async (t) => {
  const setUp = new SetUp(log, 'log . "{/a/b} {/log/class} {/log/type}"')
  setUp.block.metadata.providers.set('a/b', () => 'va\nlue')
  setUp.block.metadata.isEnabled = true
  setUp.handler(reply(Rcode.NXDOMAIN, Authority, RRType.SOA)).serve(transaction(question))
  t.strictSame(setUp.lines, ['[INFO] va\\x0alue denial NXDOMAIN'])
})

t.test('a name can not forge a line', async (t) => {
  const name = 'a\\010\\091INFO\\093\\034.example.org.'
  const [line] = await lines('log . "{name}"', { name })
  t.equal(line, '[INFO] a\\010[info]\\".example.org.')
})

t.test('names and classes', async (t) => {
  const denial = reply(Rcode.NXDOMAIN, Authority, RRType.SOA)
  const table = [
    { given: 'log example.org', want: 1 },
    { given: 'log EXAMPLE.org.', want: 1 },
    { given: 'log example.net', want: 0 },
    { given: 'log {common}', want: 0 },
    { given: 'log example.net example.org {common}', want: 1 },
    { given: 'log . {\n class success\n}', want: 1 },
    { given: 'log . {\n class denial error\n}', want: 0 },
    { given: 'log . {\n class denial\n class all\n}', want: 1 },
    { given: 'log . {\n class denial\n}', below: denial, want: 1 },
    { given: 'log . {\n class error\n}', below: denial, want: 0 },
    { given: 'log . {\n class error\n}', below: reply(Rcode.REFUSED), want: 1 },
    { given: 'log . {\n class error\n}', below: reply(-1), want: 1 },
    { given: 'log www.example.org {\n class error\n}\nlog .', want: 0 },
    { given: 'log a.example.org {\n class error\n}\nlog .', want: 1 },
  ]
  for (const { given, below, want } of table) {
    t.equal((await lines(given, question, below)).length, want, given)
  }
})

t.test('bad lines', async (t) => {
  const table = [
    { given: 'log . {\n class\n}', want: 'Wrong argument count' },
    { given: 'log . {\n class good\n}', want: 'invalid Class: good' },
    { given: 'log . {\n klass all\n}', want: 'Wrong argument count' },
    {
      given: `log . "${'{name}'.repeat(600)}"`,
      want: 'this format has lines of up to 612010 octets, and 524288 are allowed',
    },
    { given: 'log a..b', want: 'zone is not a valid domain name: a..b' },
  ]
  for (const { given, want } of table) t.match(setupError(log, given), want, given)
})
