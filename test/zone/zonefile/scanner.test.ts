// biome-ignore-all lint/suspicious/noTemplateCurlyInString: $GENERATE modifiers look like placeholders
import { test } from 'tap'
import { scanText } from '../../support/zone-text.ts'

const good: { name: string; given: string; want: string[] }[] = [
  {
    name: 'a record with everything written out',
    given: 'www.example.org. 300 IN A 192.0.2.1\n',
    want: ['www.example.org. 300 IN A 192.0.2.1'],
  },
  {
    name: 'class and TTL come in either order',
    given: 'a 5 IN A 192.0.2.1\nb IN 6 A 192.0.2.2\nc A 192.0.2.3\nd IN A 192.0.2.4',
    want: [
      'a.example.org. 5 IN A 192.0.2.1',
      'b.example.org. 6 IN A 192.0.2.2',
      'c.example.org. 6 IN A 192.0.2.3',
      'd.example.org. 6 IN A 192.0.2.4',
    ],
  },
  {
    name: 'without any TTL there is the default of an hour',
    given: 'a A 192.0.2.1\n',
    want: ['a.example.org. 3600 IN A 192.0.2.1'],
  },
  {
    name: '$TTL holds from where it stands, above the last TTL written',
    given: 'a 5 A 192.0.2.1\n$TTL 1h30m\nb A 192.0.2.2\n$ttl 10\nc A 192.0.2.3\n',
    want: [
      'a.example.org. 5 IN A 192.0.2.1',
      'b.example.org. 5400 IN A 192.0.2.2',
      'c.example.org. 10 IN A 192.0.2.3',
    ],
  },
  {
    name: 'TTLs take units in any case',
    given: 'a 1w2D3h4M5s A 192.0.2.1\n',
    want: ['a.example.org. 788645 IN A 192.0.2.1'],
  },
  {
    name: 'an omitted owner is the last one',
    given: 'a 1 A 192.0.2.1\n  A 192.0.2.2\n\tIN A 192.0.2.3\n',
    want: [
      'a.example.org. 1 IN A 192.0.2.1',
      'a.example.org. 1 IN A 192.0.2.2',
      'a.example.org. 1 IN A 192.0.2.3',
    ],
  },
  {
    name: 'owners are in lower case, names in rdata as written',
    given: 'WWW 1 CNAME Target.Example.ORG.\n',
    want: ['www.example.org. 1 IN CNAME Target.Example.ORG.'],
  },
  {
    name: '@ is the origin, and $ORIGIN moves it',
    given: '@ 1 NS ns\n$ORIGIN sub\n@ 1 A 192.0.2.1\n$ORIGIN b.example.org.\n@ 1 CNAME @\n',
    want: [
      'example.org. 1 IN NS ns.example.org.',
      'sub.example.org. 1 IN A 192.0.2.1',
      'b.example.org. 1 IN CNAME b.example.org.',
    ],
  },
  {
    name: 'parentheses join lines, comments and blank lines in them included',
    given: [
      '@ 1 SOA ns host ( 1 ; serial',
      '',
      '   2',
      '   3 ) ( 4',
      '5 )',
      'a 1 A 192.0.2.1 ; comment',
      '',
    ].join('\n'),
    want: [
      'example.org. 1 IN SOA ns.example.org. host.example.org. 1 2 3 4 5',
      'a.example.org. 1 IN A 192.0.2.1',
    ],
  },
  {
    name: 'quotes keep blanks, semicolons and parentheses',
    given: 'a 1 TXT "a b;(c)" d "" "e\\"f"\n',
    want: ['a.example.org. 1 IN TXT "a b;(c)" "d" "" "e\\"f"'],
  },
  {
    name: 'a quoted string may span lines',
    given: 'a 1 TXT "one\ntwo"\nb 1 A 192.0.2.1\n',
    want: ['a.example.org. 1 IN TXT "one\\010two"', 'b.example.org. 1 IN A 192.0.2.1'],
  },
  {
    name: 'quotes inside a field belong to it',
    given: 'a 1 HTTPS 1 . alpn="h2,h3" port=8443\n',
    want: ['a.example.org. 1 IN HTTPS 1 . alpn="h2,h3" port=8443'],
  },
  {
    name: 'escapes in owners keep dots, dollars and octets',
    given: 'a\\.b 1 A 192.0.2.1\n\\$x 1 A 192.0.2.2\n\\255\\032 1 A 192.0.2.3\n',
    want: [
      'a\\.b.example.org. 1 IN A 192.0.2.1',
      '\\$x.example.org. 1 IN A 192.0.2.2',
      '\\255\\032.example.org. 1 IN A 192.0.2.3',
    ],
  },
  {
    name: 'octets beyond ASCII pass unchanged',
    given: 'a 1 TXT \u00e9\n',
    want: ['a.example.org. 1 IN TXT "\\195\\169"'],
  },
  {
    name: 'CRLF line ends, and a byte order mark',
    given: '\ufeffa 1 A 192.0.2.1\r\nb 1 A 192.0.2.2\r\n',
    want: ['a.example.org. 1 IN A 192.0.2.1', 'b.example.org. 1 IN A 192.0.2.2'],
  },
  {
    name: 'RFC 3597 types, classes and data',
    given: 'a 1 CLASS1 TYPE1 192.0.2.1\na 1 IN A \\# 4 c0000202\nb 1 TYPE731 \\# 3 ABCDEF\n',
    want: [
      'a.example.org. 1 IN A 192.0.2.1',
      'a.example.org. 1 IN A 192.0.2.2',
      'b.example.org. 1 IN TYPE731 \\# 3 abcdef',
    ],
  },
  {
    name: 'a name that looks like a type or TTL is an owner in the first column',
    given: 'A 1 A 192.0.2.1\n300 1 A 192.0.2.2\nIN 1 A 192.0.2.3\n',
    want: [
      'a.example.org. 1 IN A 192.0.2.1',
      '300.example.org. 1 IN A 192.0.2.2',
      'in.example.org. 1 IN A 192.0.2.3',
    ],
  },
  {
    name: 'wildcards are names like others',
    given: '* 1 A 192.0.2.1\n',
    want: ['*.example.org. 1 IN A 192.0.2.1'],
  },
  {
    name: '$GENERATE counts, with a step',
    given: '$GENERATE 1-5/2 h$ 60 IN A 192.0.2.$\n',
    want: [
      'h1.example.org. 60 IN A 192.0.2.1',
      'h3.example.org. 60 IN A 192.0.2.3',
      'h5.example.org. 60 IN A 192.0.2.5',
    ],
  },
  {
    name: '$GENERATE modifiers: offset, width and base',
    given: [
      '$TTL 1',
      '$GENERATE 9-10 d${0,3} TXT ${-9}',
      '$GENERATE 255-255 x${1,4,x}.${0,4,X}.${0,4,o} TXT ${0,7,n} ${0,3,N}',
    ].join('\n'),
    want: [
      'd009.example.org. 1 IN TXT "0"',
      'd010.example.org. 1 IN TXT "1"',
      'x0100.00ff.0377.example.org. 1 IN TXT "f.f.0.0" "F.F"',
    ],
  },
  {
    name: '$GENERATE with dollar signs that stay',
    given: '$GENERATE 1-1 a$$b\\$c$ 1 TXT "$$" "\\$"\n',
    want: ['a\\$b\\$c1.example.org. 1 IN TXT "$" "$"'],
  },
  {
    name: '$GENERATE takes the TTL that holds, and leaves the owner to the next line',
    given: '$TTL 7\n$GENERATE 1-2 h$ CNAME t$\n A 192.0.2.1\n',
    want: [
      'h1.example.org. 7 IN CNAME t1.example.org.',
      'h2.example.org. 7 IN CNAME t2.example.org.',
      'h2.example.org. 7 IN A 192.0.2.1',
    ],
  },
  { name: 'an empty file', given: '', want: [] },
  { name: 'nothing but comments', given: '; a\n\n   ; b\n', want: [] },
]

for (const { name, given, want } of good) {
  test(`master file: ${name}`, async (t) => {
    t.same(scanText(given), { records: want, errors: [] })
  })
}

const bad: { name: string; given: string; line: number; want: RegExp }[] = [
  { name: 'no owner at all', given: '\n  A 192.0.2.1\n', line: 2, want: /has no owner/ },
  { name: 'a quoted owner', given: '"a" 1 A 192.0.2.1', line: 1, want: /"a" is not a domain name/ },
  { name: 'an empty label', given: 'a..b 1 A 192.0.2.1', line: 1, want: /is not a domain name/ },
  {
    name: 'a label over 63 octets',
    given: `${'a'.repeat(64)} 1 A 192.0.2.1`,
    line: 1,
    want: /1 to 63 octets/,
  },
  {
    name: 'a name over 255 octets once the origin is added',
    given: `${'abcdefg.'.repeat(31)}a 1 A 192.0.2.1`,
    line: 1,
    want: /names up to 255/,
  },
  {
    name: 'an invalid escape',
    given: 'a\\256 1 A 192.0.2.1',
    line: 1,
    want: /is not a domain name/,
  },
  { name: 'an unknown type', given: 'a 1 IN FOO bar', line: 1, want: /"FOO" is not a record type/ },
  { name: 'no type', given: 'a 1 IN', line: 1, want: /has no type; write OWNER/ },
  { name: 'only an owner', given: 'a', line: 1, want: /has no type/ },
  { name: 'a type of queries', given: 'a 1 AXFR', line: 1, want: /"AXFR" is a type of queries/ },
  { name: 'OPT', given: 'a 1 OPT', line: 1, want: /"OPT" is a type of queries/ },
  { name: 'type 0', given: 'a 1 TYPE0 \\# 0', line: 1, want: /type of queries, not of records/ },
  { name: 'class CH', given: 'a 1 CH TXT x', line: 1, want: /class "CH" is not served; use IN/ },
  { name: 'class by number', given: 'a CLASS3 TXT x', line: 1, want: /class "CLASS3" is not/ },
  {
    name: 'a TTL beyond 32 bits',
    given: 'a 4294967296 A 192.0.2.1',
    line: 1,
    want: /is not a TTL/,
  },
  { name: 'a TTL with a bad unit', given: 'a 1y A 192.0.2.1', line: 1, want: /"1y" is not a TTL/ },
  { name: 'two TTLs', given: 'a 1 2 A 192.0.2.1', line: 1, want: /"2" is not a record type/ },
  {
    name: 'bad rdata',
    given: 'a 1 A 192.0.2.256',
    line: 1,
    want: /^db\.test:1: A: .*192\.0\.2\.256/,
  },
  { name: 'a leading zero in an address', given: 'a 1 A 192.0.2.01', line: 1, want: /A: / },
  { name: 'no rdata', given: 'a 1 A', line: 1, want: /A: expected/ },
  { name: 'too much rdata', given: 'a 1 A 192.0.2.1 192.0.2.2', line: 1, want: /A: / },
  { name: 'a bad name in rdata', given: 'a 1 CNAME a..b', line: 1, want: /CNAME: / },
  {
    name: 'an open parenthesis, at the line where it opens',
    given: 'a 1 A 192.0.2.1\n@ 1 SOA a b (\n1 2 3\n4 5\n',
    line: 2,
    want: /a parenthesis is not closed; add \)/,
  },
  {
    name: 'a closing parenthesis alone',
    given: 'a 1 A 192.0.2.1 )',
    line: 1,
    want: /\) without \(/,
  },
  {
    name: 'an open quote, at the line where it opens',
    given: '\na 1 TXT "x\ny\n',
    line: 2,
    want: /quoted string is not closed/,
  },
  {
    name: 'a backslash at the end of a line',
    given: 'a 1 TXT x\\\n',
    line: 1,
    want: /backslash ends/,
  },
  { name: 'an unknown directive', given: '$FOO 1', line: 1, want: /unknown directive "\$FOO"/ },
  { name: '$TTL without a value', given: '$TTL', line: 1, want: /write \$TTL SECONDS/ },
  { name: '$TTL with nonsense', given: '$TTL x', line: 1, want: /"x" is not a TTL/ },
  { name: '$ORIGIN without a name', given: '$ORIGIN', line: 1, want: /write \$ORIGIN NAME/ },
  { name: '$ORIGIN with a bad name', given: '$ORIGIN a..b', line: 1, want: /is not a domain name/ },
  { name: '$INCLUDE without a file', given: '$INCLUDE', line: 1, want: /write \$INCLUDE FILE/ },
  { name: '$INCLUDE of nothing', given: '$INCLUDE nowhere', line: 1, want: /open .*no such file/ },
  {
    name: '$INCLUDE of a device',
    given: '$INCLUDE /dev/zero',
    line: 1,
    want: /not a regular file/,
  },
  { name: '$INCLUDE of a directory', given: '$INCLUDE /', line: 1, want: /not a regular file/ },
  {
    name: '$GENERATE cut short',
    given: '$GENERATE 1-2 a',
    line: 1,
    want: /write \$GENERATE START/,
  },
  { name: '$GENERATE backwards', given: '$GENERATE 2-1 a$ A 1.2.3.4', line: 1, want: /bad range/ },
  { name: '$GENERATE with step 0', given: '$GENERATE 1-2/0 a$ A 1.2.3.4', line: 1, want: /step 0/ },
  {
    name: '$GENERATE of nonsense',
    given: '$GENERATE x a$ A 1.2.3.4',
    line: 1,
    want: /is not a range/,
  },
  {
    name: '$GENERATE with too many steps',
    given: '$GENERATE 0-65535 a$ A 1.2.3.4',
    line: 1,
    want: /more than 65535 steps/,
  },
  {
    name: '$GENERATE with a bad modifier',
    given: '$GENERATE 1-2 a${0,3,q} A 1.2.3.4',
    line: 1,
    want: /bad modifier/,
  },
  {
    name: '$GENERATE with a modifier that never ends',
    given: '$GENERATE 1-2 a${0,3 A 1.2.3.4',
    line: 1,
    want: /bad modifier/,
  },
  {
    name: '$GENERATE below zero',
    given: '$GENERATE 1-2 a${-2} A 1.2.3.4',
    line: 1,
    want: /bad modifier/,
  },
  {
    name: '$GENERATE that makes bad records, reported once',
    given: '\n$GENERATE 1-9 a$ A 1.2.3',
    line: 2,
    want: /A: /,
  },
]

for (const { name, given, line, want } of bad) {
  test(`master file: ${name} is an error with its place`, async (t) => {
    const { errors } = scanText(given)
    t.equal(errors.length, 1, errors.join('\n'))
    t.match(errors[0], want)
    t.ok(errors[0]?.startsWith(`db.test:${line}: `), `${errors[0]}`)
  })
}

test('master file: the scan goes on after a fault, and finds the next', async (t) => {
  const { records, errors } = scanText('a 1 FOO\nb 1 A 192.0.2.1\nc 1 A x\nd 1 A 192.0.2.2\n')
  t.equal(errors.length, 2)
  t.same(records, ['b.example.org. 1 IN A 192.0.2.1', 'd.example.org. 1 IN A 192.0.2.2'])
})

test('master file: lines under a broken owner are not reported again', async (t) => {
  const { records, errors } = scanText('a 1 A 192.0.2.1\nb..c 1 A 192.0.2.2\n 1 A 192.0.2.3\n')
  t.equal(errors.length, 1)
  t.same(records, ['a.example.org. 1 IN A 192.0.2.1'])
})

test('master file: the scan gives up after so many faults', async (t) => {
  t.equal(scanText('a 1 FOO\n'.repeat(50), { errorsMax: 3 }).errors.length, 3)
})

test('master file: more records than allowed are an error', async (t) => {
  const { records, errors } = scanText('$GENERATE 1-9 a$ A 192.0.2.$\n', { recordsMax: 4 })
  t.equal(records.length, 4)
  t.match(errors, [/more than 4 records; split the zone/])
})

test('master file: $GENERATE counts towards the size of the zone', async (t) => {
  const { errors } = scanText('$GENERATE 1-60000 a$ A 192.0.2.1\n', { octetsMax: 1000 })
  t.match(errors, [/\$GENERATE makes more than \d+ octets of text/])
})

test('master file: what all $GENERATE of a zone make is bounded', async (t) => {
  const lines = '$GENERATE 1-65535 a$ A 192.0.2.1\n'.repeat(2000)
  const { records, errors } = scanText(lines, { generatedMax: 70_000 })
  t.equal(records.length, 65_535)
  t.match(errors, [
    /^db\.test:2: \$GENERATE makes more than 70000 records in this zone; split the zone/,
  ])
  t.equal(errors.length, 1, 'one fault, not one for each line')
  const text = scanText(lines, { expandedOctetsMax: 10_000 })
  t.match(text.errors, [
    /^db\.test:1: \$GENERATE makes more than 10000 octets of text in this zone/,
  ])
  t.equal(text.errors.length, 1)
  const step = scanText('$GENERATE 1-10/3 a$ A 192.0.2.1\n$GENERATE 1-1 b$ A 192.0.2.1\n', {
    generatedMax: 5,
  })
  t.same(step.errors, [])
  t.equal(step.records.length, 5)
})
