import t from 'tap'
import { printType, Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { Section } from '../../../src/dns/message/section.ts'
import { printName } from '../../../src/dns/name/name.ts'
import { printRdata } from '../../../src/dns/rdata/index.ts'
import type { Transaction } from '../../../src/plugin/transaction.ts'
import { template } from '../../../src/plugins/template/setup.ts'
import { SetUp } from '../../support/setup.ts'
import { answering, lonelyServer, type Question, transaction } from '../../support/transaction.ts'

/** The status of the next plugin. */
const PASSED = 1841

const next = answering(() => PASSED)

function printed({ response }: Transaction): string[] {
  return Array.from({ length: response.count }, (_, i) => {
    const mark = ['', '! ', '+ '][response.section[i]!]
    const rdata = response.rdataBytes[i]!.subarray(response.rdataOffset[i]!)
    const owner = printName(response.ownerBytes[i]!, response.ownerOffset[i]!)
    const type = response.type[i]!
    const fixed = `${response.ttlSeconds[i]} ${response.rrclass[i]} ${printType(type)}`
    return `${mark}${owner} ${fixed} ${printRdata(type, rdata)}`
  })
}

const IP = 'match (^|[.])ip-10-(?P<b>[0-9]*)-(?P<c>[0-9]*)-(?P<d>[0-9]*)[.]example[.]$'
const A = 'answer "{{ .Name }} 60 IN A 10.{{ .Group.b }}.{{ .Group.c }}.{{ .Group.d }}"'

const fall = (...lines: readonly string[]): string =>
  `template ANY ANY . {\n ${[...lines, 'fallthrough'].join('\n ')}\n}`

interface Row {
  readonly name: string
  readonly given: string
  readonly ask: Question
  readonly status?: number
  readonly want?: readonly string[]
  readonly error?: string
  readonly metadata?: Readonly<Record<string, string>>
}

// The cases of CoreDNS's TestHandler.
const TABLE: readonly Row[] = [
  {
    name: 'RcodeServFail',
    given: fall('match .*', 'rcode SERVFAIL'),
    ask: { name: 'test.invalid.' },
    status: Rcode.SERVFAIL,
  },
  {
    name: 'ExampleDomainNameMismatch',
    given: fall(IP, A),
    ask: { name: 'test.invalid.' },
    status: PASSED,
  },
  {
    name: 'NonRRTemplate',
    given: fall('match [.]example[.]$', 'answer "{{ .Name }}"'),
    ask: { name: 'test.example.', type: RRType.ANY },
    status: Rcode.SERVFAIL,
    error: 'template "{{ .Name }}": not a record: the end of the text is not a TTL',
  },
  {
    name: 'NonRRAdditionalTemplate',
    given: fall('match [.]example[.]$', 'additional "{{ .Name }}"'),
    ask: { name: 'test.example.', type: RRType.ANY },
    status: Rcode.SERVFAIL,
    error: 'not a record',
  },
  {
    name: 'ExampleIPMatch',
    given: 'template IN A . {\n answer "{{ .Name }} 60 IN A {{ .Remote }}"\n}',
    ask: { name: 'test.example.', from: '10.240.0.1' },
    want: ['test.example. 60 1 A 10.240.0.1'],
  },
  {
    name: 'ExampleDomainMatch',
    given: fall(IP, A),
    ask: { name: 'ip-10-95-12-8.example.' },
    want: ['ip-10-95-12-8.example. 60 1 A 10.95.12.8'],
  },
  {
    name: 'ExampleDomainMatchHexIp',
    given: fall(
      'match ^ip0a(?P<b>[a-f0-9]{2})(?P<c>[a-f0-9]{2})(?P<d>[a-f0-9]{2})[.]example[.]$',
      'answer "{{ .Name }} 60 IN A 10.{{ parseInt .Group.b 16 8 }}.{{ parseInt .Group.c 16 8 }}.{{ parseInt .Group.d 16 8 }}"',
    ),
    ask: { name: 'ip0a5f0c09.example.' },
    want: ['ip0a5f0c09.example. 60 1 A 10.95.12.9'],
  },
  {
    name: 'BrokenParseIntTemplate',
    given: fall(
      'match [.]example[.]$',
      'answer "{{ .Name }} 60 IN TXT {{ parseInt \\"gg\\" 16 8 }}"',
    ),
    ask: { name: 'test.example.', type: RRType.ANY },
    status: Rcode.SERVFAIL,
    error: 'error calling parseInt: parsing "gg": invalid syntax',
  },
  {
    name: 'parseInt is out of range',
    given: fall(
      'match ^([0-9]+)[.]',
      'answer "{{ .Name }} 60 IN TXT {{ parseInt .Group.1 10 8 }}"',
    ),
    ask: { name: '256.example.' },
    status: Rcode.SERVFAIL,
    error: 'out of range',
  },
  {
    name: 'ExampleDomainMXMatch',
    given: fall(IP, 'answer "{{ .Name }} 60 MX 10 {{ .Name }}"', A.replace('answer', 'additional')),
    ask: { name: 'ip-10-95-12-8.example.', type: RRType.MX },
    want: [
      'ip-10-95-12-8.example. 60 1 MX 10 ip-10-95-12-8.example.',
      '+ ip-10-95-12-8.example. 60 1 A 10.95.12.8',
    ],
  },
  {
    name: 'ExampleDomainANSMatch',
    given: fall(
      IP,
      'additional "ns0.example. IN A 203.0.113.8"',
      'authority "example. IN NS ns0.example.com."',
      A,
    ),
    ask: { name: 'ip-10-95-12-8.example.' },
    want: [
      'ip-10-95-12-8.example. 60 1 A 10.95.12.8',
      '! example. 3600 1 NS ns0.example.com.',
      '+ ns0.example. 3600 1 A 203.0.113.8',
    ],
  },
  {
    name: 'ExampleInvalidNXDOMAIN',
    given: fall(
      'match [.]invalid[.]$',
      'rcode NXDOMAIN',
      'answer "invalid. 60 {{ .Class }} SOA a.invalid. b.invalid. (1 60 60 60 60)"',
    ),
    ask: { name: 'test.invalid.', type: RRType.MX, class: RRClass.CH },
    status: Rcode.NXDOMAIN,
    want: ['invalid. 60 3 SOA a.invalid. b.invalid. 1 60 60 60 60'],
  },
  {
    name: 'CNAMEWithoutUpstream',
    given: fall('match example[.]net[.]', 'answer "example.net 60 IN CNAME target.example.com"'),
    ask: { name: 'example.net.' },
    want: ['example.net. 60 1 CNAME target.example.com.'],
  },
  {
    name: 'mdMatch',
    given: fall(
      IP,
      'answer `{{.Meta "test/foo"}}-{{ .Name }} 60 IN A 10.{{ .Group.b }}.{{ .Group.c }}.1`',
      'authority `example. IN NS {{ .Meta "test/bar" }}.example.com.`',
    ).replaceAll(/`(.*)`/g, (_, text: string) => `"${text.replaceAll('"', '\\"')}"`),
    ask: { name: 'ip-10-95-12-8.example.' },
    metadata: { 'test/foo': 'myfoo', 'test/bar': 'mybar' },
    want: [
      'myfoo-ip-10-95-12-8.example. 60 1 A 10.95.12.1',
      '! example. 3600 1 NS mybar.example.com.',
    ],
  },
  {
    name: 'mdMissing',
    given: fall(IP, 'answer "{{ .Meta \\"test/none\\" }}{{ .Name }} 60 IN A 10.0.0.1"'),
    ask: { name: 'ip-10-95-12-8.example.' },
    want: ['ip-10-95-12-8.example. 60 1 A 10.0.0.1'],
  },
  {
    name: 'fields, comments, blanks, numbers of groups',
    given: fall(
      'match ^([a-z]+)-([a-z]+)[.]',
      'answer "{{.Name}} 1m {{ .Class }} TXT {{/* x */}} {{ index .Match 2 }} {{ .Group.1 -}}   {{- .Zone }} {{ .Type }} {{ .Question.Qtype }} {{ index .Group \\"2\\" }}"',
    ),
    ask: { name: 'one-two.example.', type: RRType.TXT },
    want: ['one-two.example. 60 1 TXT "two" "one." "TXT" "16" "two"'],
  },
  {
    name: 'a group of another regular expression',
    given: fall('match ^(?P<a>x) y', 'answer "{{ .Name }} 60 IN TXT \\"{{ .Group.a }}\\""'),
    ask: { name: 'y.example.' },
    want: ['y.example. 60 1 TXT "<no value>"'],
  },
]

t.test('replies', async (t) => {
  for (const { name, given, ask, status = 0, want = [], error = '', metadata } of TABLE) {
    const setUp = new SetUp(template, given)
    setUp.block.metadata.isEnabled = metadata !== undefined
    for (const [label, value] of Object.entries(metadata ?? {})) {
      setUp.block.metadata.providers.set(label, () => value)
    }
    const tx = transaction(ask)
    t.equal(await setUp.handler(next).serve(tx), status, name)
    if (status !== Rcode.SERVFAIL) t.strictSame(printed(tx), want, name)
    t.match(tx.response.error, error, name)
    if (status !== Rcode.SERVFAIL && status !== PASSED) t.equal(tx.response.authoritative, true)
  }
})

t.test('which queries a template concerns', async (t) => {
  const { IN, CH, ANY } = RRClass
  const table = [
    { given: 'IN A example.', name: 'a.example.', want: 0 },
    { given: 'IN A example.', name: 'a.example.', type: RRType.AAAA, want: PASSED },
    { given: 'IN ANY example.', name: 'a.example.', type: RRType.AAAA, want: 0 },
    { given: 'IN A example.', name: 'a.example.', type: RRType.ANY, want: 0 },
    { given: 'IN A example.', name: 'a.example.', class: CH, want: Rcode.REFUSED },
    { given: 'CH A example.', name: 'a.example.', class: CH, want: 0 },
    { given: 'CH A example.', name: 'a.example.', class: ANY, want: 0 },
    { given: 'ANY ANY example.', name: 'a.example.', class: IN, want: 0 },
    { given: 'IN A example. org.', name: 'a.org.', want: 0 },
    { given: 'IN A example.', name: 'a.org.', want: PASSED },
    { given: 'IN A', name: 'a.example.org.', want: 0 },
    { given: 'IN A', name: 'a.example.net.', want: PASSED },
  ]
  for (const { given, want, ...ask } of table) {
    const handler = new SetUp(template, `template ${given} {\n rcode NOERROR\n}`).handler(next)
    t.equal(await handler.serve(transaction(ask)), want, JSON.stringify({ given, ...ask }))
  }
})

t.test('fallthrough', async (t) => {
  const two = (property: string): string =>
    `template ANY ANY . {\n match ^a[.]\n ${property}\n}\ntemplate ANY ANY . {\n match ^b[.]\n rcode NXDOMAIN\n fallthrough\n}`
  const table = [
    { given: two('rcode NOERROR'), name: 'b.example.', want: Rcode.SERVFAIL },
    { given: two('fallthrough'), name: 'b.example.', want: Rcode.NXDOMAIN },
    { given: two('fallthrough'), name: 'c.example.', want: PASSED },
    { given: two('fallthrough org'), name: 'b.example.', want: Rcode.SERVFAIL },
    { given: two('fallthrough example'), name: 'b.example.', want: Rcode.NXDOMAIN },
  ]
  for (const { given, name, want } of table) {
    const handler = new SetUp(template, given).handler(next)
    t.equal(await handler.serve(transaction({ name })), want, `${name} ${given}`)
  }
})

t.test('response codes and extended errors', async (t) => {
  const given = (rcode: string): string =>
    fall(
      `rcode ${rcode}`,
      'authority "invalid. 60 IN NS ns.invalid."',
      'ederror 21 "Blocked: RFC 2606"',
    )
  const tx = transaction({ name: 'x.invalid.', payloadOctets: 1232 })
  t.equal(await new SetUp(template, given('NXDOMAIN')).handler(next).serve(tx), Rcode.NXDOMAIN)
  t.equal(tx.response.edeCode, 21)
  t.equal(Buffer.from(tx.response.edeText).toString(), 'Blocked: RFC 2606')
  const refused = transaction({ name: 'x.invalid.' })
  t.equal(await new SetUp(template, given('REFUSED')).handler(next).serve(refused), 0)
  t.equal(refused.response.rcode, Rcode.REFUSED)
  t.equal(refused.response.count, 1, 'the records are sent')
})

t.test('the records of a CNAME are added', async (t) => {
  for (const late of [false, true]) {
    const asked: string[] = []
    let released = 0
    const server = {
      ...lonelyServer,
      lookupInternally: (_: Transaction, name: Uint8Array, type: number) => {
        asked.push(`${printName(name)} ${printType(type)}`)
        const found = transaction({ name: printName(name), type })
        const address = Uint8Array.of(192, 0, 2, 7)
        const { response, query } = found
        response.add(Section.Answer, query.qname, 0, RRType.A, RRClass.IN, 9, address, 0, 4)
        response.truncated = true
        return late ? Promise.resolve(found) : found
      },
      release: () => {
        released++
      },
    }
    const given = fall(
      'answer "{{ .Name }} 60 IN CNAME Google.example"',
      'additional "x. IN A 192.0.2.1"',
    )
    const handler = new SetUp(template, given).handler(next)
    const tx = transaction({ name: 'foogle.example.' }, server)
    t.equal(await handler.serve(tx), 0)
    t.strictSame(asked, ['google.example. A'])
    t.strictSame(printed(tx), [
      'foogle.example. 60 1 CNAME Google.example.',
      'google.example. 9 1 A 192.0.2.7',
      '+ x. 3600 1 A 192.0.2.1',
    ])
    t.equal(tx.response.truncated, true)
    t.equal(released, 1)
    await handler.serve(transaction({ name: 'foogle.example.', type: RRType.CNAME }, server))
    t.equal(asked.length, 1, 'a query for the CNAME itself needs no more')
  }
})

t.test('one account of limits for all names of the zone', async (t) => {
  const handler = new SetUp(template, 'template IN A example. {\n rcode NXDOMAIN\n}').handler(next)
  const tx = transaction({ name: 'a.b.example.' })
  await handler.serve(tx)
  t.equal(tx.response.imputedLabel, 2)
})

t.test('metrics', async (t) => {
  const text = '{{ .Name }} 60 IN A {{ index .Match 1 }}'
  const setUp = new SetUp(
    template,
    `template IN A example. {\n match ^([^.]*)[.]\n answer "${text}"\n}`,
  )
  const handler = setUp.handler(next)
  await setUp.start()
  for (const name of ['a.example.', 'b.example.']) await handler.serve(transaction({ name }))
  const labels = 'server="dns://:53",zone="example.",view="",class="IN",type="A"'
  t.equal(await setUp.metric(`coredns_template_matches_total{${labels}}`), 2)
  const record = `${labels},section="answer",template="${text}"`
  t.equal(await setUp.metric(`coredns_template_rr_failures_total{${record}}`), 2)
  const handing = { ...lonelyServer, isHandingOver: true }
  await handler.serve(transaction({ name: 'c.example.' }, handing))
  const name = `coredns_template_matches_total{${labels}}`
  t.equal(await setUp.metric(name), 2, 'the other thread counts the query')
  await setUp.stop()
})

t.test('variables and conditions', async (t) => {
  const IP = 'match ^(?P<ip>[0-9]+(-[0-9]+){3})[.](?P<id>[a-z2-7]+)[.]example[.]com[.]$'
  const VAR = "var ip replace(group('ip'), '-', '.')"
  const ANSWER = 'answer "{{ .Name }} 60 IN A {{ .Var.ip }}"'
  const PRIVATE = "expr incidr(ip, '10.0.0.0/8')"
  const TXT = (value: string): string => `answer "{{ .Name }} 60 IN TXT {{ .Var.${value} }}"`
  const table: { given: string[]; ask: string; status?: number; want?: string[] }[] = [
    {
      given: [IP, VAR, PRIVATE, ANSWER],
      ask: '10-1-2-3.abc.example.com.',
      want: ['10-1-2-3.abc.example.com. 60 1 A 10.1.2.3'],
    },
    { given: [IP, VAR, PRIVATE, ANSWER], ask: '192-0-2-1.abc.example.com.', status: PASSED },
    // Not an address: the condition has no value, and nothing falls through.
    {
      given: [IP, VAR, PRIVATE, ANSWER],
      ask: '10-1-2-333.abc.example.com.',
      status: Rcode.SERVFAIL,
    },
    {
      given: [
        'match ^(a)(?P<n>b)',
        "var x group(0) + group(1) + group('n') + group('z') + group(9)",
        TXT('x'),
      ],
      ask: 'ab.',
      want: ['ab. 60 1 TXT "abab"'],
    },
    { given: ['var a 1', 'var b a + 1', TXT('b')], ask: 'a.', want: ['a. 60 1 TXT "2"'] },
    { given: ["var b name() == 'a.'", TXT('b')], ask: 'a.', want: ['a. 60 1 TXT "true"'] },
    {
      given: ["var b replace(name(), '', '-')", TXT('b')],
      ask: 'a.',
      want: ['a. 60 1 TXT "-a-.-"'],
    },
    { given: ["var b replace('$&', '&', '$&')", TXT('b')], ask: 'a.', want: ['a. 60 1 TXT "$$&"'] },
    {
      given: ["expr name() == 'b.'", "expr name() == 'a.'", TXT('b')].slice(0, 2),
      ask: 'a.',
      status: PASSED,
    },
    { given: ['expr 1'], ask: 'a.', status: PASSED },
    // Nested calls cannot make huge texts.
    {
      given: [
        `var a replace(name(), '', '${'x'.repeat(2000)}')`,
        "var b replace(a, 'x', a)",
        TXT('b'),
      ],
      ask: 'abcdefgh.',
      status: Rcode.SERVFAIL,
    },
  ]
  for (const { given, ask, status = Rcode.NOERROR, want = [] } of table) {
    for (const order of [
      given,
      given
        .filter((line) => !line.startsWith('match'))
        .concat(given.filter((line) => line.startsWith('match'))),
    ]) {
      const handler = new SetUp(template, fall(...order)).handler(next)
      const tx = transaction({ name: ask })
      t.equal(await handler.serve(tx), status, order.join('; '))
      if (status === Rcode.NOERROR) t.strictSame(printed(tx), want, order.join('; '))
    }
  }
})
