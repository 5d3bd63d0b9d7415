import fc from 'fast-check'
import t from 'tap'
import { Parser } from 'yaml'
import {
  findLine,
  parseDocuments,
  parseOneDocument,
  YamlProblem,
} from '../../src/yaml/parse-document.ts'
import {
  DOCUMENT_OCTETS_MAX,
  type DocumentRange,
  DocumentSplitter,
} from '../../src/yaml/split-documents.ts'
import { runs } from '../support/runs.ts'

const PIECE = fc.constantFrom(
  ...[
    '---\n',
    '--- # c\n',
    '---',
    '----\n',
    '--- x\n',
    ' ---\n',
    '...\n',
    '%YAML 1.2\n',
    '\n',
    '# c\n',
  ],
  ...[
    'a: 1\n',
    'b: x\n',
    'c:\n- d\n',
    'e: [f]\n',
    'g: |\n  ---\n  h\n',
    'i: "é"\n',
    'j: &k l\nm: *k\n',
  ],
)
const STREAM = fc.array(PIECE, { maxLength: 8 }).map((pieces) => pieces.join(''))

/** The values of a stream, cut into documents first; undefined where it can't be, or has a fault. */
/** All ranges of a stream; undefined = it can't be split. */
function splitDocuments(octets: Uint8Array, length: number): DocumentRange[] | undefined {
  const splitter = new DocumentSplitter(octets, length)
  const ranges: DocumentRange[] = []
  for (let next = splitter.next(); next !== undefined; next = splitter.next()) ranges.push(next)
  return splitter.ended.kind === 'end' ? ranges : undefined
}

function readSplit(text: string): unknown[] | undefined {
  const octets = Buffer.from(text)
  const ranges = splitDocuments(octets, octets.length)
  const values = ranges?.map((r) => parseOneDocument(octets.toString('utf8', r.start, r.end)))
  return values?.some((v) => v instanceof YamlProblem) ? undefined : values
}

t.test('a stream read document by document is the stream read at once', (t) => {
  let compared = 0
  const property = fc.property(STREAM, (text) => {
    const split = readSplit(text)
    const whole = parseDocuments(text)
    if (split === undefined) return true
    if (whole instanceof YamlProblem) return false
    compared++
    // What stands before the first marker is a document only if it holds something.
    const filled = (values: readonly unknown[]) => JSON.stringify(values.filter((v) => v !== null))
    return filled(split) === filled(whole)
  })
  fc.assert(property, { seed: 17, numRuns: runs(3000) })
  t.ok(compared > runs(500), `compared ${compared}`)
  t.end()
})

t.test('ranges cover the file, and say their line and whether they are ASCII', (t) => {
  const text = 'a: 1\n---\nb: é\n---\nc: 3\n'
  const octets = Buffer.from(text)
  const ranges = splitDocuments(octets, octets.length)!
  t.strictSame(
    ranges.map(({ start, end, line, isAscii }) => [start, end, line, isAscii]),
    [
      [0, 5, 1, true],
      [5, 15, 2, false],
      [15, 24, 4, true],
    ],
  )
  t.strictSame(splitDocuments(octets, 0), [])
  t.end()
})

t.test(
  'documents have the same digest wherever they stand, and another when an octet differs',
  (t) => {
    const digest = (text: string, index: number) => {
      const octets = Buffer.from(text)
      const range = splitDocuments(octets, octets.length)![index]!
      return [range.digestA, range.digestB].join()
    }
    const body = '---\nname: app\nvalue: "120"\n'
    const want = digest(body, 0)
    for (let shift = 1; shift < 9; shift++) {
      t.equal(digest(`${'#'.repeat(shift)}\n${body}`, 1), want, `moved by ${shift + 1}`)
    }
    for (let i = 4; i < body.length - 1; i++) {
      const other = Buffer.from(body)
      other[i] = other[i]! ^ 1
      if (other[i] === 0x0a || body[i] === '\n') continue
      t.not(digest(other.toString('latin1'), 0), want, `octet ${i}`)
    }
    t.end()
  },
)

t.test(
  'streams with directives, or text behind a document end, are for the complete parser',
  (t) => {
    for (const text of ['%YAML 1.2\n---\na: 1\n', 'a: 1\n... b\n', 'a: 1\n...\n%YAML 1.2\n---\n']) {
      t.equal(splitDocuments(Buffer.from(text), text.length), undefined, JSON.stringify(text))
    }
    t.end()
  },
)

t.test('document ends, and lists with their items', (t) => {
  const parts = (text: string) =>
    splitDocuments(Buffer.from(text), Buffer.byteLength(text))?.map(
      ({ start, end, line, part }) => `${line} ${part} ${JSON.stringify(text.slice(start, end))}`,
    )
  t.strictSame(parts('a: 1\n... # c\nb: 2\n...\n---\nc: 3\n'), [
    '1 whole "a: 1\\n"',
    '3 whole "b: 2\\n"',
    '5 whole "---\\nc: 3\\n"',
  ])
  t.strictSame(
    parts('---\nitems: # c\n# d\n- a: 1\n  b: 2\n\n-\n  a: 2\nkind: List\n---\nitems:\n- x\n'),
    [
      '1 head "---\\nitems: # c\\n# d\\n"',
      '4 item "- a: 1\\n  b: 2\\n\\n"',
      '7 item "-\\n  a: 2\\n"',
      '9 tail "kind: List\\n"',
      '10 head "---\\nitems:\\n"',
      '12 item "- x\\n"',
    ],
  )
  t.strictSame(parts('spec:\n- items:\nother:\n- a\n')?.length, 1, 'only the key items, at the top')
  t.strictSame(parts('items:\n  - a\n  - b\n')?.length, 1, 'an indented list is whole')
  t.end()
})

t.test('each document end is a step, so that a flood of them can be counted and paused in', (t) => {
  const octets = Buffer.from('...\n... # c\n'.repeat(500))
  t.equal(splitDocuments(octets, octets.length)?.length, 1000)
  t.end()
})

t.test('a longer document ends the file, and no more than its first octets are read', (t) => {
  const long = DOCUMENT_OCTETS_MAX
  const table: readonly { name: string; given: string; want: unknown }[] = [
    { name: 'the longest', given: 'x'.repeat(long), want: { kind: 'end' } },
    {
      name: 'the longest, and another',
      given: `${'x'.repeat(long - 1)}\n---\n`,
      want: { kind: 'end' },
    },
    { name: 'one more', given: 'x'.repeat(long + 1), want: { kind: 'large', line: 1 } },
    {
      name: 'a line before a marker',
      given: `${'x'.repeat(long)}\n---\n`,
      want: { kind: 'large', line: 1 },
    },
    {
      name: 'the second',
      given: `a: 1\n---\n${'\0'.repeat(long)}\n`,
      want: { kind: 'large', line: 2 },
    },
    { name: 'lines', given: 'a: 1\n'.repeat(long / 4), want: { kind: 'large', line: 1 } },
    {
      name: 'a document end',
      given: `a: 1\n...${' '.repeat(long)}\n`,
      want: { kind: 'large', line: 2 },
    },
    {
      name: 'an item',
      given: `items:\n- ${'x'.repeat(long)}\n- 2\n`,
      want: { kind: 'large', line: 2 },
    },
    { name: 'carriage returns', given: '\r'.repeat(long + 9), want: { kind: 'large', line: 1 } },
  ]
  for (const { name, given, want } of table) {
    const splitter = new DocumentSplitter(Buffer.from(given), given.length)
    while (splitter.next() !== undefined);
    t.strictSame(splitter.ended, want, name)
  }
  // What is behind the bound is not read: a gigabyte in one line would hold up everything else.
  let octetsRead = 0
  const spied = new Proxy(Buffer.from('x'.repeat(2 * long)), {
    get(target, key): unknown {
      if (typeof key === 'string' && /^\d+$/.test(key))
        octetsRead = Math.max(octetsRead, Number(key))
      const value: unknown = Reflect.get(target, key)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const splitter = new DocumentSplitter(spied, 2 * long)
  t.equal(splitter.next(), undefined)
  t.ok(octetsRead <= long + 8, `read up to ${octetsRead}`)
  t.end()
})

t.test('parser bombs are refused, not parsed', (t) => {
  const table: readonly { name: string; given: string; want: RegExp }[] = [
    { name: 'brackets', given: '['.repeat(100_000), want: /nested too deep/ },
    { name: 'compact sequences', given: '- '.repeat(50_000), want: /nested too deep/ },
    {
      name: 'indentation',
      given: Array.from({ length: 300 }, (_, i) => `${' '.repeat(2 * i)}? a`).join('\n'),
      want: /nested too deep/,
    },
    {
      name: 'size',
      given: `a: [${'x,'.repeat(900_000)}]`,
      want: /may have up to 131072 characters, not 1800005/,
    },
    {
      name: 'tokens',
      given: `a: [${'x,'.repeat(8200)}]`,
      want: /may have up to 16384 characters outside of block scalars: split it/,
    },
    {
      name: 'markers of block scalars',
      given: 'a: |x\n'.repeat(3000),
      want: /may have up to 16384/,
    },
    { name: 'short block scalars', given: '- |\n a\n'.repeat(5000), want: /may have up to 16384/ },
    { name: 'quotes', given: `x:\n  - [${'"\n'.repeat(60_000)}`, want: /may have up to 16384/ },
    { name: 'explicit keys', given: `${'? '.repeat(17)}a`, want: /nested too deep/ },
    {
      name: 'keys in keys',
      given: `a:\n- ${'['.repeat(60)}${']: b'.repeat(60)}`,
      want: /as a key/,
    },
    { name: 'a mapping as a key', given: '? a: b\n: c\n', want: /a list or a mapping as a key/ },
    {
      name: 'aliases of aliases',
      given: [
        'a0: &a0 [x,x,x,x,x,x,x,x,x,x]',
        ...Array.from(
          { length: 8 },
          (_, i) => `a${i + 1}: &a${i + 1} [${`*a${i},`.repeat(9)}*a${i}]`,
        ),
      ].join('\n'),
      want: /alias/i,
    },
  ]
  for (const { name, given, want } of table) {
    const got = parseOneDocument(given)
    t.match(got instanceof YamlProblem ? got.message : 'parsed', want, name)
  }
  t.end()
})

t.test('long texts that take little time are parsed', (t) => {
  const letter = `a: |\n${' x: [y], "z"\n'.repeat(9000)}b: 1\n`
  t.match(parseOneDocument(letter), { b: 1 }, 'a block scalar')
  const block = `a:\n${'- b: 1\n'.repeat(18_000)}`
  const want = parseOneDocument(block)
  t.notOk(want instanceof YamlProblem)
  t.strictSame(parseOneDocument(block.replaceAll('\n', '\r\n')), want, 'CRLF')
  t.equal(findLine(block, 0, ['a', 15_000, 'b']), 15_002, 'the line of a fault')
  t.end()
})

t.test('a document is parsed once for the lines of all its faults', (t) => {
  const items = Array.from({ length: 1000 }, (_, i) => ` {a: ${i}},\n`)
  const text = `items: [\n${items.join('')} ]\n`
  t.notOk(parseDocuments(text) instanceof YamlProblem)
  const count = t.capture(Parser.prototype, 'parse', Parser.prototype.parse)
  const lines = items.map((_, i) => findLine(text, 0, ['items', i, 'a']))
  t.strictSame(
    lines,
    items.map((_, i) => i + 2),
  )
  t.equal(count().length, 0)
  t.end()
})

t.test('the line of a field is found, or that of its nearest parent', (t) => {
  const text = '---\na:\n  b:\n  - c: 1\n  - c: 2\n'
  t.equal(findLine(text, 0, ['a', 'b', 1, 'c']), 5)
  t.equal(findLine(text, 0, ['a', 'b', 1, 'missing']), 5)
  t.equal(findLine(text, 0, ['a']), 3)
  t.equal(findLine(text, 9, []), 1)
  t.end()
})
