import t from 'tap'
import { RRType } from '../../../src/dns/iana/types.ts'
import { view } from '../../../src/plugins/view/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'
import { type Question, transaction } from '../../support/transaction.ts'

const QUESTION: Question = {
  ...{ name: 'WWW.example.org.', type: RRType.AAAA, from: '192.0.2.7', port: 4000 },
  ...{ payloadOctets: 1232, dnssecOk: true },
}

function matches(expression: string, question: Partial<Question> = {}): boolean {
  const setUp = new SetUp(view, `view test {\n expr ${expression}\n}`)
  setUp.block.metadata.isEnabled = true
  setUp.block.metadata.providers.set('geoip/country/code', () => 'IE')
  return setUp.block.filters[0]!(transaction({ ...QUESTION, ...question }))
}

t.test('expressions have the value that expr-lang gives them', async (t) => {
  const table: { given: string; want: boolean; question?: Partial<Question> }[] = [
    { given: 'true', want: true },
    { given: 'false', want: false },
    { given: '1 + 2 * 3 == 7', want: true },
    { given: '(1 + 2) * 3 == 9', want: true },
    { given: '7 % 4 - -1 == 4', want: true },
    { given: '1_000 == 1e3 and 0x10 == 16 and .5 == 0.5', want: true },
    { given: '10 / 4 == 2.5', want: true },
    { given: 'true || false && false', want: true },
    { given: 'not false and true', want: true },
    { given: '!(1 > 2) && 2 >= 2 && 1 <= 1 && 1 < 2 && 1 != 2', want: true },
    { given: "'a' + 'b' == 'ab' and 'a' < 'b'", want: true },
    { given: "type() in ['A', 'AAAA']", want: true },
    { given: "type() in ['A', 'MX',]", want: false },
    { given: "type() not in ['A', 'MX']", want: true },
    { given: '2 in [1, id(), 2]', want: true },
    { given: '[1, [2]] == [1, [2]]', want: true },
    { given: '1 in []', want: false },
    { given: "type() == 'A' ? false : proto() == 'udp' ? true : false", want: true },
    { given: "name() == 'www.example.org.'", want: true },
    {
      given: "name() startsWith 'www.' && name() endsWith '.org.' && name() contains 'example'",
      want: true,
    },
    { given: "name() not contains 'net'", want: true },
    { given: "name() matches '^www\\\\.[a-z]+\\\\.org\\\\.$'", want: true },
    { given: "name() matches '(?i)^WWW'", want: true },
    { given: "name() matches '^WWW'", want: false },
    { given: "name() matches '^[[:alpha:]]+[.](?:e.*)+$'", want: true },
    {
      given: "name() matches '^(?:[a-z0-9]|[a-f0-9])+\\\\.example\\\\.org\\\\.$'",
      want: false,
      question: { name: `${'a'.repeat(60)}.example.net.` },
    },
    { given: "`a\\b` == 'a\\\\b' && '\\x41\\u0042' == 'AB'", want: true },
    { given: "client_ip() == '192.0.2.7' && port() == '4000'", want: true },
    { given: "client_ip() == '[2001:db8::1]'", question: { from: '2001:db8::1' }, want: true },
    { given: "server_ip() == '127.0.0.53' && server_port() == '53'", want: true },
    { given: "incidr(client_ip(), '192.0.2.0/24')", want: true },
    { given: "incidr(client_ip(), '192.0.2.8/29')", want: false },
    {
      given: "incidr(client_ip(), '2001:db8::/32')",
      question: { from: '2001:db8::1' },
      want: true,
    },
    { given: "incidr(client_ip(), '2001:db8::/32')", want: false },
    { given: "incidr(server_ip(), '127.0.0.0/8')", want: true },
    { given: "incidr('192.0.2.1', true ? '192.0.2.0/24' : '')", want: true },
    { given: "incidr(name(), '192.0.2.0/24') or true", want: false },
    { given: "incidr('192.0.2.1', name())", want: false },
    { given: '1 % (1 - 1) == 0 or true', want: false },
    { given: "class() == 'IN' && opcode() == 0 && id() == 4660 && size() > 12", want: true },
    { given: 'do()', want: true },
    { given: 'bufsize() == 1232', want: true },
    { given: 'bufsize() == 65535', question: { tcp: true }, want: true },
    { given: "metadata('geoip/country/code') == 'IE' && metadata('no/such') == ''", want: true },
    { given: 'nil == nil', want: true },
    { given: 'name() == nil', want: false },
    { given: 'id()', want: false },
  ]
  for (const { given, want, question } of table) t.equal(matches(given, question), want, given)
})

t.test('faults are found at load, with their column', async (t) => {
  const table = [
    { given: "type( == 'A'", want: /unexpected token operator "==" \(column 7\)/ },
    { given: 'nosuch()', want: /unknown name nosuch \(column 1\)/ },
    { given: 'type', want: /unknown name type: a function needs \( \) \(column 1\)/ },
    { given: 'type() == 1', want: /== \(mismatched types string and number\) \(column 8\)/ },
    { given: 'id() && true', want: /&& \(mismatched types number and boolean\)/ },
    { given: '!id()', want: /! \(mismatched type number\)/ },
    { given: "1 in 'abc'", want: /in \(mismatched types number and string\)/ },
    { given: 'incidr(client_ip())', want: /not enough arguments to call incidr/ },
    { given: "name('x')", want: /too many arguments to call name/ },
    {
      given: "incidr(client_ip(), '192.0.2.0/33')",
      want: /invalid CIDR address: 192\.0\.2\.0\/33/,
    },
    { given: 'metadata(1)', want: /arguments of metadata must be strings/ },
    { given: "name() matches '('", want: /invalid pattern: missing closing \)/ },
    {
      given: "name() matches '(?=a)'",
      want: /invalid pattern: invalid or unsupported Perl syntax/,
    },
    { given: 'name() matches name()', want: /pattern of matches must be a literal/ },
    { given: "true ? 1 : 'a'", want: /two sides of \?: have types number and string/ },
    { given: '1 ? true : false', want: /non-bool expression/ },
    { given: "'open", want: /literal not terminated \(column 1\)/ },
    { given: "'\\q'", want: /invalid escape in literal/ },
    { given: 'true true', want: /unexpected token name "true" \(column 6\)/ },
    { given: 'true and', want: /unexpected end of expression \(column 9\)/ },
    { given: 'true @ false', want: /unrecognized character "@" \(column 6\)/ },
    { given: '1e999 == 1', want: /number out of range/ },
    { given: '('.repeat(100), want: /nested more than 64 levels deep/ },
    { given: '!'.repeat(100), want: /nested more than 64 levels deep/ },
    { given: `'${'x'.repeat(9000)}'`, want: /at most 8192 characters/ },
  ]
  for (const { given, want } of table) {
    const error = setupError(view, `view test {\n expr ${given}\n}`)
    t.match(error, /^Corefile:2 - Error during parsing: invalid expression: /, given)
    t.match(error, want, given)
  }
})

t.test('an answer that was chosen by the location of a client subnet has its scope', async (t) => {
  const geo = "metadata('geoip/country/code') == 'IE'"
  const table = [
    { name: 'the view matches', expression: geo, want: 24 },
    { name: 'it does not', expression: `not (${geo})`, want: 24 },
    { name: 'a computed label', expression: "metadata('geoip/' + 'asn/number') == ''", want: 24 },
    { name: 'no place is read', expression: "metadata('log/class') == '' && do()", want: 0 },
    { name: 'read only where it matters', expression: `type() == 'A' && ${geo}`, want: 0 },
    { name: 'the subnet is not the client', expression: geo, locatesSubnet: false, want: 0 },
    { name: 'a narrower scope stays', expression: geo, before: 28, want: 28 },
    { name: 'no bits', expression: geo, sourceBits: 0, want: 0 },
  ]
  for (const {
    name,
    expression,
    locatesSubnet = true,
    before = 0,
    sourceBits = 24,
    want,
  } of table) {
    const setUp = new SetUp(view, `view test {\n expr ${expression}\n}`)
    setUp.block.metadata.isEnabled = true
    setUp.block.metadata.locatesSubnet = locatesSubnet
    for (const label of ['geoip/country/code', 'geoip/asn/number', 'log/class']) {
      setUp.block.metadata.providers.set(label, () => '')
    }
    const tx = transaction(QUESTION)
    tx.query.ecsFamily = 1
    tx.query.ecsSourceBits = sourceBits
    tx.response.scopeBits = before
    setUp.block.filters[0]!(tx)
    t.equal(tx.response.scopeBits, want, name)
  }
})

t.test('a view has a name, and as many expressions as it needs', async (t) => {
  const both = new SetUp(view, "view v1 {\n expr proto() == 'udp'\n expr type() == 'A'\n}")
  t.equal(both.block.viewName, 'v1')
  t.equal(both.block.metadata.providers.get('view/name')!(transaction(QUESTION)), 'v1')
  t.equal(both.block.filters[0]!(transaction(QUESTION)), false, 'one is false')
  t.equal(both.block.filters[0]!(transaction({ ...QUESTION, type: RRType.A })), true)
  const none = new SetUp(view, 'view v2')
  t.equal(none.block.filters[0]!(transaction(QUESTION)), true, 'without any')
  t.match(setupError(view, 'view'), /Wrong argument count/)
  t.match(setupError(view, 'view a b'), /Wrong argument count/)
  t.match(setupError(view, 'view a {\n expr\n}'), /Wrong argument count/)
  t.match(setupError(view, 'view a {\n rule true\n}'), /unknown property 'rule'/)
  t.match(setupError(view, 'view a\nview b'), /multiple views defined in server block/)
})

t.test('an expression that is neither true nor false is a warning', async (t) => {
  const setUp = new SetUp(view, 'view a {\n expr id()\n}')
  t.match(setUp.warnings, [/^2: expression is a number/])
})
