import t from 'tap'
import { printType, Rcode, RRClass, RRType, scanType } from '../../../src/dns/iana/index.ts'
import { Section } from '../../../src/dns/message/section.ts'
import { printName, ROOT_NAME, scanName } from '../../../src/dns/name/name.ts'
import { printRdata, scanRdata, splitFields } from '../../../src/dns/rdata/index.ts'
import type { Handler } from '../../../src/plugin/handler.ts'
import type { Transaction } from '../../../src/plugin/transaction.ts'
import { rewrite } from '../../../src/plugins/rewrite/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'
import { answering, lonelyServer, type Question, transaction } from '../../support/transaction.ts'

/** Adds `[+|!] OWNER TTL TYPE RDATA`; `@` = the name of the query, `+` additional, `!` authority. */
function add(tx: Transaction, line: string): void {
  const sections = { '+': Section.Additional, '!': Section.Authority } as const
  const mark = line[0] as keyof typeof sections
  const section = sections[mark] ?? Section.Answer
  const [owner = '', ttl = '', typeText = '', ...rest] = line.replace(/^[+!] /, '').split(' ')
  const type = scanType(typeText)!
  const rdata = scanRdata(type, splitFields(rest.join(' '))!, ROOT_NAME)
  if (rdata instanceof Error || !(rdata instanceof Uint8Array)) throw new Error(`no rdata: ${line}`)
  const name = owner === '@' ? tx.query.qname : scanName(owner)!
  tx.response.add(section, name, 0, type, RRClass.IN, Number(ttl), rdata, 0, rdata.length)
}

function printed({ response }: Transaction): string[] {
  return Array.from({ length: response.count }, (_, i) => {
    const mark = ['', '! ', '+ '][response.section[i]!]
    const at = response.rdataOffset[i]!
    const rdata = response.rdataBytes[i]!.subarray(at, at + response.rdataOctets[i]!)
    const owner = printName(response.ownerBytes[i]!, response.ownerOffset[i]!)
    const type = response.type[i]!
    return `${mark}${owner} ${response.ttlSeconds[i]} ${printType(type)} ${printRdata(type, rdata)}`
  })
}

/** The query as the links below see it: `NAME CLASS TYPE`. */
function seen({ query }: Transaction): string {
  return `${printName(query.qname)} ${query.qclass} ${printType(query.qtype)}`
}

interface Run {
  readonly rules: readonly string[]
  readonly ask: Question
  readonly reply?: readonly string[]
  readonly rcode?: number
  readonly status?: number
  readonly late?: boolean
  readonly below?: Handler
}

async function run({ rules, ask, reply = [], rcode = 0, status, late, below }: Run) {
  let query = ''
  const end = answering((tx) => {
    query = seen(tx)
    for (const line of reply) add(tx, line)
    tx.response.rcode = rcode
    return status ?? rcode
  }, late)
  const corefile = rules.map((rule) => `rewrite ${rule}`).join('\n')
  const handler = new SetUp(rewrite, corefile).handler(below ?? end)
  const tx = transaction(ask)
  const before = seen(tx)
  const suffixes = [...tx.query.suffixHash.subarray(0, tx.query.labelCount + 1)]
  const result = await handler.serve(tx)
  t.equal(seen(tx), before, 'the query is restored')
  t.strictSame([...tx.query.suffixHash.subarray(0, tx.query.labelCount + 1)], suffixes)
  return { query, records: printed(tx), status: result, rcode: tx.response.rcode, tx }
}

// The rules and cases of CoreDNS's TestRewrite.
const RULES = [
  'name from.nl. to.nl.',
  'stop name regex (core)\\.(dns)\\.(rocks)\\.(nl) {2}.{1}.{3}.{4} answer name (dns)\\.(core)\\.(rocks)\\.(nl) {2}.{1}.{3}.{4}',
  'name exact from.exact.nl. to.nl.',
  'name prefix prefix to',
  'name suffix .suffix. .nl.',
  'name substring from.substring to',
  'name regex (f.*m)\\.regex\\.(nl) to.{2}',
  'continue name regex consul\\.(rocks) core.dns.{1}',
  'stop name core.dns.rocks to.nl.',
  'continue class HS CH',
  'stop class CH IN',
  'stop type ANY HINFO',
]

t.test('which query the links below see', async (t) => {
  const { A, ANY } = RRType
  const { IN, CH, HS } = RRClass
  const table = [
    { from: 'from.nl.', type: A, class: IN, want: 'to.nl. 1 A' },
    { from: 'a.nl.', type: A, class: IN, want: 'a.nl. 1 A' },
    { from: 'a.nl.', type: A, class: CH, want: 'a.nl. 1 A' },
    { from: 'a.nl.', type: ANY, class: IN, want: 'a.nl. 1 HINFO' },
    { from: 'from.nl.', type: ANY, class: IN, want: 'to.nl. 1 ANY' },
    { from: 'from.exact.nl.', type: A, class: IN, want: 'to.nl. 1 A' },
    { from: 'prefix.nl.', type: A, class: IN, want: 'to.nl. 1 A' },
    { from: 'to.suffix.', type: A, class: IN, want: 'to.nl. 1 A' },
    { from: 'from.substring.nl.', type: A, class: IN, want: 'to.nl. 1 A' },
    { from: 'from.regex.nl.', type: A, class: IN, want: 'to.nl. 1 A' },
    { from: 'consul.rocks.', type: A, class: IN, want: 'to.nl. 1 A' },
    { from: 'a.nl.', type: ANY, class: CH, want: 'a.nl. 1 ANY' },
    { from: 'a.nl.', type: ANY, class: HS, want: 'a.nl. 1 ANY' },
    { from: 'core.dns.rocks.nl.', type: A, class: IN, want: 'dns.core.rocks.nl. 1 A' },
  ]
  for (const { from, want, ...question } of table) {
    const { query } = await run({ rules: RULES, ask: { name: from, ...question } })
    t.equal(query, want, from)
  }
})

t.test('names of replies', async (t) => {
  // CoreDNS's cases of name_test.go: the rule, the query, its new name, the owner in the reply.
  const table = [
    ['name prefix foo bar', 'foo.example.com.', 'bar.example.com.', 'bar.example.com.'],
    ['name prefix foo. bar.', 'foo.example.com.', 'bar.example.com.', 'bar.example.com.'],
    ['name suffix com org', 'foo.example.com.', 'foo.example.org.', 'foo.example.org.'],
    ['name suffix .com .org', 'foo.example.com.', 'foo.example.org.', 'foo.example.org.'],
    ['name suffix .i.rocks nginx.rocks', 'c.i.rocks.', 'cnginx.rocks.', 'cnginx.rocks.'],
    ['name prefix foo bar', 'coredns.foo.', 'coredns.foo.', 'coredns.foo.'],
    ['name suffix com org', 'com.coredns.', 'com.coredns.', 'com.coredns.'],
    ['name substring service svc', 'com.coredns.', 'com.coredns.', 'com.coredns.'],
    ['name prefix foo bar answer auto', 'foo.example.com.', 'bar.example.com.', 'foo.example.com.'],
    ['name suffix com org answer auto', 'foo.a.com.', 'foo.a.org.', 'foo.a.com.'],
    ['name suffix .i.rocks nginx.rocks answer auto', 'c.i.rocks.', 'cnginx.rocks.', 'c.i.rocks.'],
    ['name exact a.rocks service.consul answer auto', 'a.rocks.', 'service.consul.', 'a.rocks.'],
    ['name exact a.rocks. service.consul.', 'a.rocks.', 'service.consul.', 'a.rocks.'],
    ['name a.rocks service.consul', 'a.rocks.', 'service.consul.', 'a.rocks.'],
    ['name exact a.org. service.consul.', 'a.rocks.', 'a.rocks.', 'a.rocks.'],
    ['name regex (.*).c.rocks {1}.c.maps answer auto', 'f.c.rocks.', 'f.c.maps.', 'f.c.rocks.'],
    [
      'name regex (.*).c.rocks {1}.c.maps answer name (.*).c.maps {1}.c.works',
      'f.c.rocks.',
      'f.c.maps.',
      'f.c.works.',
    ],
    ['name regex (.*).c.rocks {1}.c.maps', 'f.c.rocks.', 'f.c.maps.', 'f.c.maps.'],
  ] as const
  for (const [rule, name, asked, owner] of table) {
    for (const late of [false, true]) {
      const reply = ['@ 5 A 10.0.0.1']
      const { query, records } = await run({ rules: [rule], ask: { name }, reply, late })
      t.equal(query, `${asked} 1 A`, rule)
      t.strictSame(records, [`${owner} 5 A 10.0.0.1`], rule)
    }
  }
})

t.test('names in values', async (t) => {
  const regex =
    'stop name regex (.*)\\.domain\\.uk {1}.cluster.local answer name (.*)\\.cluster\\.local {1}.domain.uk answer value (.*)\\.cluster\\.local {1}.domain.uk'
  const sets = [
    [regex],
    [regex.replace('stop', 'continue')],
    [
      'name suffix .domain.uk .cluster.local answer auto answer value (.*)\\.cluster\\.local {1}.domain.uk',
    ],
    [
      'continue name suffix .domain.uk .domain.us answer auto',
      'stop name suffix .domain.us .cluster.local answer auto',
    ],
  ]
  const table = [
    ['SRV', '0 100 100 srv1.my.cluster.local.', '0 100 100 srv1.my.domain.uk.'],
    ['CNAME', 'cname.cluster.local.', 'cname.domain.uk.'],
    ['DNAME', 'dname.cluster.local.', 'dname.domain.uk.'],
    ['MX', '1 mx1.cluster.local.', '1 mx1.domain.uk.'],
    ['NS', 'ns1.cluster.local.', 'ns1.domain.uk.'],
    ['PTR', 'ptr.cluster.local.', 'ptr.domain.uk.'],
    [
      'SOA',
      'ns1.cluster.local. admin.cluster.local. 1 14400 3600 604800 14400',
      'ns1.domain.uk. admin.cluster.local. 1 14400 3600 604800 14400',
    ],
    [
      'NAPTR',
      '100 10 "S" "SIP+D2U" "!^.*$!sip:x@example.com!" _sip._udp.cluster.local.',
      '100 10 "S" "SIP+D2U" "!^.*$!sip:x@example.com!" _sip._udp.domain.uk.',
    ],
    ['TXT', '"a.cluster.local."', '"a.cluster.local."'],
  ] as const
  for (const rules of sets) {
    for (const [type, rdata, want] of table) {
      const reply = [`@ 5 ${type} ${rdata}`, '+ srv1.my.cluster.local. 5 A 10.0.0.1']
      const ask = { name: 'my.domain.uk.', type: scanType(type)! }
      const { query, records } = await run({ rules, ask, reply })
      t.equal(query, `my.cluster.local. 1 ${type}`)
      t.strictSame(records, [
        `my.domain.uk. 5 ${type} ${want}`,
        '+ srv1.my.domain.uk. 5 A 10.0.0.1',
      ])
    }
  }
})

t.test('TTLs', async (t) => {
  const table = [
    ['ttl srv1.coredns.rocks. 10', 10],
    ['ttl exact srv1.coredns.rocks 15', 15],
    ['ttl prefix srv1 20', 20],
    ['ttl suffix .coredns.rocks 25', 25],
    ['ttl substring dns 7', 7],
    ['ttl substring dns.rocks 30', 30],
    ['ttl regex (srv1)\\.(coredns)\\.(rocks) 35', 35],
    ['ttl srv1.coredns.rocks. 1-300', 5],
    ['ttl srv1.coredns.rocks. -3', 3],
    ['ttl srv1.coredns.rocks. 30-', 30],
    ['ttl srv2.coredns.rocks. 30', 5],
  ] as const
  for (const [rule, want] of table) {
    const ask = { name: 'srv1.coredns.rocks.' }
    const { records } = await run({ rules: [rule], ask, reply: ['@ 5 A 10.0.0.1'] })
    t.strictSame(records, [`srv1.coredns.rocks. ${want} A 10.0.0.1`], rule)
  }
})

t.test('response codes', async (t) => {
  const { NOERROR, SERVFAIL, NXDOMAIN, REFUSED } = Rcode
  const name = 'srv1.coredns.rocks.'
  const table = [
    { rule: 'rcode srv1.coredns.rocks SERVFAIL NOERROR', given: SERVFAIL, want: NOERROR },
    { rule: 'rcode exact srv1.coredns.rocks 2 0', given: SERVFAIL, want: NOERROR },
    { rule: 'rcode prefix srv1 SERVFAIL NXDOMAIN', given: SERVFAIL, want: NXDOMAIN },
    { rule: 'rcode suffix .coredns.rocks SERVFAIL REFUSED', given: SERVFAIL, want: REFUSED },
    { rule: 'rcode substring coredns.rocks NXDOMAIN 0', given: NXDOMAIN, want: NOERROR },
    { rule: 'rcode regex (.*)\\.coredns\\.rocks NOERROR 3', given: NOERROR, want: NXDOMAIN },
    { rule: 'rcode srv2.coredns.rocks SERVFAIL NOERROR', given: SERVFAIL, want: SERVFAIL },
    { rule: 'rcode srv1.coredns.rocks NXDOMAIN NOERROR', given: SERVFAIL, want: SERVFAIL },
  ]
  for (const { rule, given, want } of table) {
    if (given === SERVFAIL) {
      const bare = await run({ rules: [rule], ask: { name }, rcode: 0, status: given })
      t.equal(bare.status === NOERROR ? bare.rcode : bare.status, want, `${rule}: not written`)
    }
    const reply = ['! example. 60 NS ns.example.']
    const written = await run({ rules: [rule], ask: { name }, reply, rcode: given, status: 0 })
    t.equal(written.rcode, want, `${rule}: written`)
    t.strictSame(written.records, reply)
  }
})

t.test('targets of CNAMEs', async (t) => {
  const rules = ['cname regex (.*).cdn.example.net. {1}.other.cdn.com.']
  for (const late of [false, true]) {
    const asked: string[] = []
    const server = {
      ...lonelyServer,
      lookupInternally: (_: Transaction, name: Uint8Array, type: number) => {
        asked.push(`${printName(name)} ${printType(type)}`)
        const found = transaction({ name: printName(name), type })
        add(found, '@ 100 A 30.3.1.2')
        return late ? Promise.resolve(found) : found
      },
    }
    const below = answering((tx) => {
      add(tx, '@ 200 CNAME my-app.example.')
      add(tx, 'my-app.example. 200 CNAME my-app.com.cdn.example.net.')
      add(tx, 'my-app.com.cdn.example.net. 300 A 20.2.0.1')
      add(tx, '! example. 60 NS ns.example.')
      return 0
    }, late)
    const handler = new SetUp(rewrite, `rewrite ${rules[0]}`).handler(below)
    const tx = transaction({ name: 'my-app.com.' }, server)
    t.equal(await handler.serve(tx), 0)
    t.strictSame(asked, ['my-app.com.other.cdn.com. A'])
    t.strictSame(printed(tx), [
      'my-app.com. 200 CNAME my-app.example.',
      'my-app.example. 200 CNAME my-app.com.other.cdn.com.',
      '! example. 60 NS ns.example.',
      'my-app.com.other.cdn.com. 100 A 30.3.1.2',
    ])
  }
  const reply = ['@ 200 CNAME x.cdn.example.net.', 'x.cdn.example.net. 60 A 192.0.2.1']
  const kept = await run({ rules, ask: { name: 'a.example.' }, reply })
  t.match(kept.records, ['a.example. 200 CNAME x.cdn.example.net.', /192/], 'no block serves it')
})

t.test('EDNS options', async (t) => {
  const table = [
    { rule: 'edns0 nsid set', has: false, want: 'nsid' },
    { rule: 'edns0 nsid append', has: false, want: 'nsid' },
    { rule: 'edns0 nsid replace', has: false, want: '' },
    { rule: 'edns0 nsid unset', has: true, want: '198.51.100.0/24' },
    { rule: 'edns0 subnet set 24 56', has: false, want: '192.0.2.0/24' },
    { rule: 'edns0 subnet set 24 56', has: true, want: 'nsid 192.0.2.0/24' },
    { rule: 'edns0 subnet set 20 56 revert', has: false, want: '192.0.0.0/20' },
    { rule: 'edns0 subnet append 24 56', has: true, want: 'nsid 198.51.100.0/24' },
    { rule: 'edns0 subnet append 24 56', has: false, want: '192.0.2.0/24' },
    { rule: 'edns0 subnet replace 24 56', has: false, want: '' },
    { rule: 'edns0 subnet replace 24 56', has: true, want: 'nsid 192.0.2.0/24' },
    { rule: 'edns0 subnet unset', has: true, want: 'nsid' },
  ]
  const options = ({ query }: Transaction): string => {
    const address = query.ecsAddress.subarray(0, 4).join('.')
    const subnet = query.hasEcs ? `${address}/${query.ecsSourceBits}` : ''
    return `${query.nsidRequested ? 'nsid ' : ''}${subnet}`.trim()
  }
  for (const { rule, has, want } of table) {
    let found = ''
    const below = answering((tx) => {
      found = options(tx)
      return 0
    })
    const tx = transaction({ name: 'a.example.', from: '192.0.2.77', payloadOctets: 1232 })
    if (has) {
      tx.query.nsidRequested = true
      tx.query.hasEcs = true
      tx.query.ecsFamily = 1
      tx.query.ecsSourceBits = 24
      tx.query.ecsAddress.set([198, 51, 100, 0])
    }
    const before = options(tx)
    await new SetUp(rewrite, `rewrite ${rule}`).handler(below).serve(tx)
    t.equal(found, want, rule)
    t.equal(options(tx), before, `${rule}: the reply has the options of the client`)
  }
})

t.test('a new name that is invalid', async (t) => {
  const { status, tx } = await run({
    rules: ['name example.org. example..org.'],
    ask: { name: 'example.org.' },
  })
  t.equal(status, Rcode.SERVFAIL)
  t.equal(tx.response.error, 'invalid name after rewrite')
  const long = await run({
    rules: ['name regex (.*) {1}{1}'],
    ask: { name: `${'a'.repeat(60)}.example.` },
  })
  t.equal(long.status, Rcode.SERVFAIL)
})

t.test('a zone transfer is not rewritten', async (t) => {
  const ask = { name: 'a.example.', type: RRType.AXFR }
  t.equal((await run({ rules: ['name a.example b.example'], ask })).query, 'a.example. 1 AXFR')
})

t.test('a failure below restores the query', async (t) => {
  const below = answering(() => {
    throw new Error('broken')
  }, true)
  const handler = new SetUp(rewrite, 'rewrite name a.example b.example').handler(below)
  const tx = transaction({ name: 'a.example.' })
  await t.rejects(Promise.resolve(handler.serve(tx)), 'broken')
  t.equal(printName(tx.query.qname), 'a.example.')
})

t.test('accounts of limits belong to a zone of the client', async (t) => {
  const table = [
    { zone: 1, want: 1 },
    { zone: 2, want: 2 },
    { zone: 0, want: 0 },
  ]
  for (const { zone, want } of table) {
    const below = answering((tx) => {
      tx.response.imputedLabel = zone
      return 0
    })
    const ask = { name: 'x.a.example.' }
    const { tx } = await run({ rules: ['name suffix a.example b.example'], ask, below })
    t.equal(tx.response.imputedLabel, want)
  }
  const below = answering((tx) => {
    tx.response.imputedLabel = 1
    return 0
  })
  const { tx } = await run({ rules: ['name suffix a.b.c. d.'], ask: { name: 'x.a.b.c.' }, below })
  t.equal(tx.response.imputedLabel, 3, 'd. stands for c.')
})

t.test('rules', async (t) => {
  // CoreDNS's cases of TestNewRule, TestNewNameRule and TestParse.
  const accepted = [
    'name a.com b.com',
    'name exact a.com b.com',
    'name prefix a.com b.com',
    'name suffix a.com b.com',
    'name substring a.com b.com',
    'name regex ([a])\\.com new-{1}.com',
    'name regex (dns)\\.(core)\\.(rocks) {2}.{1}.{3} answer name (core)\\.(dns)\\.(rocks) {2}.{1}.{3}',
    'name substring fcore.dns.rocks dns.fcore.rocks answer name (fcore)\\.(dns)\\.(rocks) {2}.{1}.{3}',
    'name regex a.com c.rock answer name (.*).c.rock {1}.a.com value (.*).c.rock {1}.a.com',
    'name suffix a.com. c.rock. answer auto value (.*).c.rock {1}.a.com',
    'type any a',
    'class ch in',
    'stop type any a',
    'continue class ch in',
    'edns0 nsid set',
    'edns0 nsid append revert',
    'edns0 subnet set 24 56',
    'edns0 subnet replace 24 56 revert',
    'edns0 subnet unset',
    'stop {\n name regex foo bar\n answer name bar foo\n}',
    'stop name regex foo bar answer name bar foo',
    'ttl suffix .example 30',
    'rcode example.org 2 NOERROR',
    'rcode example.org BADSIG BADCOOKIE',
    'cname a.example b.example',
    'cname suffix .a.example. .b.example.',
    'name regex (?i)A\\.com b.com',
  ]
  for (const rule of accepted) t.equal(setupError(rewrite, `rewrite ${rule}`), '', rule)
  const rejected: readonly (readonly [string, string])[] = [
    ['', 'no rule type specified for rewrite'],
    ['foo', 'invalid rule type "foo"'],
    ['stop', 'stop rule must begin with a rule type'],
    ['continue', 'continue rule must begin with a rule type'],
    ['name', 'too few arguments for a name rule'],
    ['name a.com', 'too few arguments for a name rule'],
    [
      'name a.com b.com c.com',
      'name rule supports only exact, prefix, suffix, substring, and regex',
    ],
    ['name regex ([a]\\.com new-{1}.com', 'invalid regular expression .* missing closing \\)'],
    ['name regex (?=a) b.com', 'invalid or unsupported Perl syntax'],
    ['name regex (a)\\1 b.com', 'back-references are not supported'],
    ['name regex (.*).c.rocks {1}.{2}.c.rocks', 'uses more subexpressions'],
    ['name regex a b answer name (.*).c {1}.{2}.d', 'uses more subexpressions'],
    ['name regex a b answer name c d too.long way', 'invalid type "too.long" for answer rule'],
    ['name regex a b NoAnswer name c d', 'exceeded the number of arguments'],
    ['name regex a b answer ttl c d', 'invalid type "ttl" for answer rule for regex rule'],
    ['name substring a.com b.com c.com', 'invalid arguments for substring rule'],
    ['name suffix a b answer', 'invalid arguments for suffix rule'],
    ['name suffix a b answer name', 'name answer rule for suffix rule: 2 arguments required'],
    ['name suffix a b answer other', 'invalid type "other" for answer rule for suffix rule'],
    ['name regex a b answer auto name c d', 'auto name answer rule cannot be combined'],
    ['name regex a b answer name c d value', 'value answer rule .* 2 arguments required'],
    ['name regex a b answer name c d answer', 'type missing for answer rule'],
    ['name regex a {1} metadata answer auto', 'metadata in the new name is not supported'],
    ['type', 'type rules must have exactly two arguments'],
    ['type any a a', 'type rules must have exactly two arguments'],
    ['type XY WV', 'invalid type "XY"'],
    ['class ch in in', 'class rules must have exactly two arguments'],
    ['class IN WV', 'invalid class "WV"'],
    ['edns0', 'too few arguments for an EDNS0 rule'],
    ['edns0 unknown set', 'invalid rule type "unknown"'],
    ['edns0 nsid foo', 'invalid action: "foo"'],
    ['edns0 nsid set junk', 'EDNS0 NSID rules can accept no more than one arg'],
    ['edns0 nsid unset revert', 'EDNS0 NSID rules can accept no more than one arg'],
    ['edns0 subnet set -1 56', 'invalid IPv4 bit mask length -1'],
    ['edns0 subnet set 33 56', 'invalid IPv4 bit mask length 33'],
    ['edns0 subnet set 24 129', 'invalid IPv6 bit mask length 129'],
    ['edns0 subnet append 24 56 72', 'EDNS0 subnet rules require three or four args'],
    ['edns0 subnet unset revert', 'subnet unset action requires exactly one argument'],
    ['ttl a.com', 'too few \\(1\\) arguments for a ttl rule'],
    ['ttl a.com x', "invalid TTL 'x' for a ttl rule"],
    ['ttl a.com -', "invalid TTL '-' for a ttl rule"],
    ['ttl a.com 12345678901234567890', "invalid TTL '12345678901234567890' for a ttl rule"],
    ['ttl a.com 30-20', "invalid TTL '30-20' for a ttl rule"],
    ['ttl a.com 4294967296', 'invalid TTL'],
    ['ttl fuzzy a.com 30', 'ttl rule supports only exact'],
    ['ttl exact a.com 30 60', 'too many \\(4\\) arguments for a ttl rule'],
    ['rcode a.com 2', 'too few \\(2\\) arguments for a rcode rule'],
    ['rcode a.com 24 0', "invalid matching RCODE '24' for a rcode rule"],
    ['rcode a.com 2 OOPS', "invalid replacement RCODE 'OOPS' for a rcode rule"],
    ['rcode exact a.com 2 3 4', 'too many \\(5\\) arguments for a rcode rule'],
    ['cname a.com', 'a cname rule has two or three arguments, not 1'],
    ['cname fuzzy a.com b.com', 'cname rule supports only exact'],
    ['name a.com b.com {\n answer auto\n}', "unknown property 'answer'"],
    ['stop {\n answer name bar foo\n}', 'response rewrites must begin with a name rule'],
    ['stop {\n name regex foo bar\n answer name bar foo\n name baz\n}', '2 arguments required'],
  ]
  for (const [rule, want] of rejected) {
    t.match(setupError(rewrite, `rewrite ${rule}`), new RegExp(`^Corefile:\\d+ .*${want}`), rule)
  }
})
