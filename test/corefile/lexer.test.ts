import fc from 'fast-check'
import t from 'tap'
import { scanTokens } from '../../src/corefile/lexer.ts'

const TOKEN_LENGTH_MAX = 65_536

const texts = (given: string) => scanTokens(given, 'Corefile').map((token) => token.text)

const tables: readonly { name: string; given: string; want: readonly string[] }[] = [
  { name: 'nothing has no tokens', given: '', want: [] },
  { name: 'white space has no tokens', given: ' \t\n\v\f\r\n', want: [] },
  { name: 'white space separates', given: 'a b\tc\nd', want: ['a', 'b', 'c', 'd'] },
  {
    name: 'Unicode white space separates',
    given: 'a\u00a0b\u2003c\u3000d\u0085e\u2028f',
    want: ['a', 'b', 'c', 'd', 'e', 'f'],
  },
  { name: 'a zero-width no-break space does not', given: 'a\ufeffb', want: ['a\ufeffb'] },
  { name: 'a byte order mark is dropped', given: '\ufeffa b', want: ['a', 'b'] },
  { name: 'a carriage return is not even a separator', given: 'a\rb\r\nc', want: ['ab', 'c'] },
  { name: 'a carriage return in quotes stays', given: '"a\rb"', want: ['a\rb'] },
  { name: 'a comment runs to the end of the line', given: 'a # b c\nd', want: ['a', 'd'] },
  { name: 'a comment starts inside a word', given: 'foo#x\nb', want: ['foo', 'b'] },
  {
    name: 'a comment inside a word cuts only that word',
    given: 'foo#x y\nz',
    want: ['foo', 'y', 'z'],
  },
  { name: 'a # in quotes is a character', given: '"a # b"', want: ['a # b'] },
  { name: 'quotes hold white space', given: '"a b" c', want: ['a b', 'c'] },
  { name: 'quotes span lines', given: '"a\nb" c', want: ['a\nb', 'c'] },
  { name: 'an escaped quote is a quote', given: String.raw`"a\"b"`, want: ['a"b'] },
  {
    name: 'other backslashes are literal',
    given: String.raw`"\d\\n\."`,
    want: [String.raw`\d\\n\.`],
  },
  {
    name: 'a backslash outside quotes is literal',
    given: String.raw`\" a\"b`,
    want: ['\\"', 'a\\"b'],
  },
  { name: 'a quote inside a word is a character', given: 'a"b c"', want: ['a"b', 'c"'] },
  { name: 'text after a closing quote is the next token', given: '"a"b', want: ['a', 'b'] },
  { name: 'empty quotes are an empty token', given: 'a "" b', want: ['a', '', 'b'] },
  { name: 'the end of the file ends quotes', given: 'a "b c', want: ['a', 'b c'] },
  { name: 'quotes that hold nothing at the end are no token', given: 'a "', want: ['a'] },
  { name: 'a backslash at the end of open quotes is lost', given: '"a\\', want: ['a'] },
  { name: 'braces need white space', given: '.:53{ } {}', want: ['.:53{', '}', '{}'] },
  { name: 'there are no here-documents', given: '<<EOF a EOF', want: ['<<EOF', 'a', 'EOF'] },
  { name: 'a backslash does not continue a line', given: 'a \\\nb', want: ['a', '\\', 'b'] },
]

t.test('the lexer splits text as CoreDNS does', async (t) => {
  for (const { name, given, want } of tables) t.strictSame(texts(given), want, name)
})

t.test('a token knows its file and the line it starts on', async (t) => {
  const tokens = scanTokens('a # c\n"b\nb" c\n\nd\\\n"x\\\ny" e', 'dir/Corefile')
  t.strictSame(
    tokens.map(({ text, line }) => [text, line]),
    [
      ['a', 1],
      ['b\nb', 2],
      ['c', 3],
      ['d\\', 5],
      ['x\\\ny', 6],
      ['e', 7],
    ],
  )
  t.ok(tokens.every((token) => token.file === 'dir/Corefile'))
})

t.test('quoted tokens come back as they went in', async () => {
  // Only a backslash before a quote or at the end cannot be written.
  const text = fc.string({ maxLength: 20 }).filter((text) => !/\\("|$)/.test(text))
  fc.assert(
    fc.property(fc.array(text), (words) => {
      const printed = words.map((word) => `"${word.replaceAll('"', '\\"')}"`).join(' ')
      const got = texts(` ${printed}`)
      if (JSON.stringify(got) !== JSON.stringify(words)) throw new Error(JSON.stringify(got))
    }),
    { seed: 1, numRuns: 500 },
  )
})

t.test('a token has its bound', async (t) => {
  const most = 'x'.repeat(TOKEN_LENGTH_MAX)
  for (const given of [most, `"${most}"`]) t.strictSame(texts(given), [most])
  const started = process.cpuUsage()
  const huge = 'x'.repeat(20_000_000)
  for (const given of [`a\n\n${most}x`, `a\n\n"${most}x"`, `a\n\n"${huge}`, `a\n\n"\n${huge}`]) {
    t.throws(() => scanTokens(given, 'f'), {
      position: { file: 'f', line: 3 },
      message:
        /^f:3 - .*a word has more than 65536 characters; it starts with ".*x*"; is a quote missing\?$/,
    })
  }
  // Not the time of a clock: others use the processors as well.
  t.ok(process.cpuUsage(started).user < 2_000_000, 'without reading it to its end')
  t.strictSame(texts(`a#${huge}`), ['a'], 'a comment is none')
})

t.test('lines never fall, and no bare token holds white space', async () => {
  const soup = fc.string({ unit: fc.constantFrom(...'ab{}#"\\ \n\r\t.:\u00a0') })
  fc.assert(
    fc.property(soup, (text) => {
      let line = 1
      for (const token of scanTokens(text, 'f')) {
        if (token.line < line) throw new Error('line fell')
        line = token.line
      }
      return line <= text.split('\n').length
    }),
    { seed: 2, numRuns: 1000 },
  )
})

t.test('a NUL is refused with its line', (t) => {
  for (const [given, line] of [
    ['a\nimport b\0c', 2],
    ['a "b\nc\0"', 2],
    ['"\\\0"', 1],
    ['a\0', 1],
  ] as const) {
    t.throws(
      () => scanTokens(given, 'Corefile'),
      { position: { line }, message: /NUL character; save the file as UTF-8/ },
      JSON.stringify(given),
    )
  }
  t.strictSame(texts('a # \0\nb'), ['a', 'b'], 'a comment may have any character')
  t.end()
})
