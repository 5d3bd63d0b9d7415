import t from 'tap'
import { template } from '../../../src/plugins/template/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'

t.test('lines of the Corefile', async (t) => {
  // CoreDNS's cases of TestSetupParse, and texts that CoreDNS rejects only at a query.
  const accepted = [
    'ANY ANY',
    'ANY ANY {\n\n}',
    'ANY ANY {\n rcode NXDOMAIN\n}',
    'ANY ANY (?P<x>',
    'ANY AAAA example.com {\n match ip-(?P<a>[0-9]*)[.]example[.]com\n authority "example.com 60 IN SOA ns.example.com hostmaster.example.com (1 60 60 60 60)"\n fallthrough\n}',
    'IN ANY example.com {\n match "[.](example[.]com[.])$"\n rcode NXDOMAIN\n authority "{{ index .Match 1 }} 60 IN SOA ns.{{ index .Match 1 }} hostmaster.example.com (1 60 60 60 60)"\n fallthrough example.com\n}',
    'ANY ANY invalid {\n rcode NXDOMAIN\n ederror 21 "Blocked according to RFC2606"\n upstream\n}',
    'IN A {\n match ^([a-z]+) ^(?P<n>x)\n answer "{{ .Name }} A 192.0.2.{{ parseInt (index .Match 1) 36 8 }}"\n}',
    'IN TXT {\n answer "{{ .Name }} TXT {{ `a}}b` }}" "b. TXT {{ .Regex }}"\n}',
  ]
  for (const given of accepted) t.equal(setupError(template, `template ${given}`), '', given)
  const rejected: readonly (readonly [string, string])[] = [
    ['', 'Wrong argument count'],
    ['X', 'Wrong argument count'],
    ['ANY', 'Wrong argument count'],
    ['X ANY', 'invalid query class X'],
    ['ANY X', 'invalid RR type X'],
    ['ANY ANY . {\n notavailable\n}', "2 .*unknown property 'notavailable'"],
    ['ANY ANY {\n answer\n}', '2 .*Wrong argument count'],
    ['ANY ANY {\n match\n}', '2 .*Wrong argument count'],
    ['ANY ANY {\n rcode\n}', '2 .*Wrong argument count'],
    ['ANY ANY {\n rcode UNDEFINED\n}', '2 .*unknown rcode UNDEFINED'],
    ['ANY ANY {\n answer "{{"\n}', '2 .*could not compile template: {{, unclosed action'],
    ['ANY ANY {\n answer "{{ }}"\n}', '2 .*missing value for command'],
    ['ANY ANY {\n answer "{{ notAFunction }}"\n}', 'notAFunction is not supported'],
    ['ANY ANY {\n answer "{{ if .Name }}x{{ end }}"\n}', 'if is not supported'],
    ['ANY ANY {\n answer "{{ .Name | printf }}"\n}', 'unexpected .*|'],
    ['ANY ANY {\n answer "{{ parseInt }}"\n}', 'missing argument'],
    ['ANY ANY {\n answer "{{ parseInt .Name 99 8 }}"\n}', 'a base of 2 to 36'],
    ['ANY ANY {\n answer "{{ .Message.Id }}"\n}', '.Message.Id is not supported'],
    ['ANY ANY {\n answer "{{ .Meta .Name }}"\n}', '.Meta needs a label as a string'],
    ['ANY ANY {\n answer "{{ index .Match .Name }}"\n}', 'index needs .Match and a number'],
    ['ANY ANY {\n answer "{{ (.Name }}"\n}', 'unclosed left paren'],
    [
      'ANY A {\n match ^(?P<a>x)\n answer "{{ .Name }} A {{ .Grup.a }}"\n}',
      '3 .*.Grup.a is not supported',
    ],
    [
      'ANY A {\n answer "{{ .Name }} A {{ .Group.b }}"\n match ^(?P<a>x)\n}',
      '2 .*no regular expression with a group b',
    ],
    [
      'ANY A {\n answer "{{ .Name }} A {{ index .Match 2 }}"\n match ^(?P<a>x)\n}',
      'with a group 2',
    ],
    ['ANY A {\n answer "{{ .Name }} A {{ .Group.1 }}"\n}', 'with a group 1'],
    ['ANY A {\n answer "a.example. A nonsense"\n}', '2 .*is not a record: '],
    ['ANY A {\n answer "a. A 192.0.2.1\nb. A 192.0.2.2"\n}', 'more than one record'],
    ['ANY A {\n match [bad\n}', '2 .*invalid regular expression'],
    [`ANY A {\n match ${'a'.repeat(10_001)}\n}`, 'too long'],
    ['ANY A {\n ederror invalid "x"\n}', 'error parsing extended DNS error code invalid'],
    ['ANY A {\n ederror too many arguments\n}', 'Wrong argument count'],
    ['ANY A {\n var a\n}', '2 .*Wrong argument count'],
    ['ANY A {\n expr\n}', '2 .*Wrong argument count'],
    ['ANY A {\n var 1a 1\n}', '2 .*invalid variable name "1a"'],
    ['ANY A {\n var a-b 1\n}', '2 .*invalid variable name "a-b"'],
    ...['name', 'group', 'len', 'true', 'let'].map((name): [string, string] => {
      return [`ANY A {\n var ${name} 1\n}`, `2 .*variable name "${name}" is reserved`]
    }),
    ['ANY A {\n var a 1\n var a 2\n}', '3 .*variable name "a" is .*used twice'],
    ['ANY A {\n var a 1 +\n}', '2 .*invalid expression: .*unexpected end'],
    ['ANY A {\n var a b + 1\n var b 1\n}', '2 .*unknown name b'],
    ["ANY A {\n var a 1\n expr a + 'x'\n}", '3 .*invalid expression'],
    ['ANY A {\n expr undefined == 1\n}', '2 .*unknown name undefined'],
    ['ANY A {\n expr group(true)\n}', '2 .*must be a string or a number'],
    ['ANY A {\n expr replace(name(), 1, 2)\n}', '2 .*must be strings'],
    ['ANY A {\n answer "{{ .Name }} A {{ .Var.b }}"\n var a 1\n}', '2 .*has no var b'],
  ]
  for (const [given, want] of rejected) {
    t.match(
      setupError(template, `template ${given}`),
      new RegExp(`^Corefile:.*${want}`, 's'),
      given,
    )
  }
})

t.test('a record that no query makes valid is a warning, with its line', async (t) => {
  const table: readonly (readonly [record: string, want: string | undefined])[] = [
    ['{{ .Name }} 60 IN A 192.0.2.256', 'expected an IPv4 address, found "192.0.2.256"'],
    ['x.{{ .Zone }} A 2001:db8::1', 'expected an IPv4 address, found "2001:db8::1"'],
    ['{{ .Name }} 60 IN A', 'A'],
    ['{{ .Name }} 60 IN MX mail.example.', 'MX'],
    ['{{ .Name }} 60 IN', 'the end of the text is not a TTL, a class or a record type'],
    ['{{ .Name }}', 'the end of the text'],
    ['{{ .Name }} 60 IN AA {{ .Group.a }}', '"AA" is not a TTL, a class or a record type'],
    ['{{ .Name }} 60s IM A {{ .Group.a }}', '"IM" is not a TTL'],
    ['{{ .Name }} IN 1 2 A {{ .Group.a }}', '"2" is not a TTL'],
    ['{{ .Name }} 60 IN A 192.0.2.1', undefined],
    ['{{ .Name }} TXT a b', undefined],
    ['{{ .Name }} IN 60 A {{ .Group.a }}', undefined],
    ['{{ .Name }} 60 IN A 192.0.2.256{{ .Group.a }}', undefined],
    ['{{ .Name }} {{ .Group.a }} IN A 192.0.2.256', undefined],
    ['{{ .Name }} 60 {{ .Class }} {{ .Type }} 192.0.2.1', undefined],
    ['{{ .Name }} 60 A{{ .Group.a }} ::1', undefined],
    ['{{ .Name }} ( 60 IN A {{ .Group.a }} )', undefined],
    ['{{ .Var.v }}', undefined],
    ['{{ .Var.v }} x', undefined],
    ['{{ .Meta `m` }} x', undefined],
  ]
  for (const [record, want] of table) {
    const text = `template ANY ANY {\n match (?P<a>x)\n var v 'x'\n answer "${record}"\n}`
    const { warnings } = new SetUp(template, text)
    if (want === undefined) t.strictSame(warnings, [], record)
    else {
      t.equal(warnings.length, 1, record)
      t.match(warnings[0], /^4: no query makes this a record: /, record)
      t.ok(warnings[0]!.includes(want), `${record}: ${warnings[0]}`)
    }
  }
})

t.test('zones that no query is for are a warning, unless a rewrite can make queries', async (t) => {
  const line = 'template IN A a.example.org org example.net'
  const want = ["1: no query of the block is for example.net.: it is outside of the block's zones"]
  t.strictSame(new SetUp(template, line).warnings, want)
  t.strictSame(new SetUp(template, line, undefined, { above: ['rewrite'] }).warnings, [])
})
