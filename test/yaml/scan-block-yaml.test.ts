import fc from 'fast-check'
import t from 'tap'
import { parseDocument } from 'yaml'
import { scanBlockYaml } from '../../src/yaml/scan-block-yaml.ts'
import { runs } from '../support/runs.ts'

/** What the complete parser says, or undefined where it finds an error. */
function reference(text: string): unknown {
  const document = parseDocument(text, { logLevel: 'silent' })
  return document.errors.length > 0 ? undefined : document.toJS()
}

const UNDERSTOOD: readonly { name: string; given: string }[] = [
  {
    name: 'a mapping with a nested mapping and a sequence at the same column',
    given: 'a:\n  b: 1\nc:\n- x\n- y\n',
  },
  {
    name: 'a sequence of mappings, indented',
    given: 'e:\n  - n: a\n    t:\n      - 192.0.2.1\n    l: {}\n  - n: b\n',
  },
  {
    name: 'quoted scalars with escapes',
    given: 'a: "x \\"y\\" \\\\z"\nb: \'it\'\'s\'\n"c": \'d\'\n',
  },
  {
    name: 'comments and blank lines anywhere',
    given: '# c\n\na: b # c\n  # c\nc: # d\n# e\n  d: e\n',
  },
  { name: 'numbers, booleans and nulls', given: 'a: 300\nb: -1\nc: true\nd: ~\ne:\nf: null\n' },
  {
    name: 'strings that look a little like numbers',
    given: 'a: 192.0.2.1\nb: 2001:db8::1\nc: 1a\nd: nothing\n',
  },
  { name: 'a document marker and no final newline', given: '---\na: b' },
  { name: 'an item on the line after its dash', given: 'a:\n-\n  b: c\n-\n' },
  {
    name: 'keys as managedFields has them',
    given: 'f:labels:\n  .: {}\n  k:{"type":"Ready"}:\n    f:x: {}\n',
  },
  { name: 'a document of comments alone', given: '# nothing\n' },
  {
    name: 'flow collections on one line',
    given: 'm: { name: r, "n": [ 1, -2 ,x y], e: [], f: {} } # c\nt: [192.0.2.1, "a, b"]\n',
  },
  {
    name: 'flow mappings as items',
    given: 'p:\n  - { name: weight, value: "60" }\n  - [a, [b]]\n',
  },
  {
    name: 'colons and dashes in flow scalars',
    given: 'a: [2001:db8::1, -x, http://b/c, a-b, x#y]\n',
  },
]

const GIVEN_UP: readonly { name: string; given: string }[] = [
  { name: 'an anchor', given: 'a: &x b\n' },
  { name: 'an alias', given: 'a: *x\n' },
  { name: 'a tag', given: 'a: !!str 1\n' },
  { name: 'a flow sequence over two lines', given: 'a: [b,\n  c]\n' },
  { name: 'an empty entry', given: 'a: [b, ]\n' },
  { name: 'a pair in a flow sequence', given: 'a: [b: c]\n' },
  { name: 'a flow entry without a value', given: 'a: {b, c: }\n' },
  { name: 'a colon next to a quoted flow key', given: 'a: {"b":1}\n' },
  { name: 'a duplicate flow key', given: 'a: {b: 1, b: 2}\n' },
  { name: 'a comment in a flow collection', given: 'a: [b # c]\n' },
  { name: 'a flow collection as a key', given: 'a:\n  [b]: c\n' },
  { name: 'flow collections deeper than 32', given: `a: ${'['.repeat(40)}${']'.repeat(40)}\n` },
  { name: 'a block scalar', given: 'a: |\n  b\n' },
  { name: 'a plain scalar over two lines', given: 'a: b\n  c\n' },
  { name: 'a quoted scalar over two lines', given: 'a: "b\n  c"\n' },
  { name: 'a tab', given: 'a:\n\tb: c\n' },
  { name: 'a carriage return', given: 'a: b\r\n' },
  { name: 'a duplicate key', given: 'a: 1\na: 2\n' },
  { name: 'indentation that fits nothing', given: 'a:\n    b: 1\n  c: 2\n' },
  { name: 'a mapping inside a plain scalar', given: 'a: b: c\n' },
  { name: 'a float', given: 'a: 1.5\n' },
  { name: 'a hexadecimal integer', given: 'a: 0x1f\n' },
  { name: 'a long integer', given: 'a: 12345678901234567890\n' },
  { name: 'a key that is no string', given: '1: a\n' },
  { name: 'a second document', given: 'a: b\n---\nc: d\n' },
  { name: 'a scalar at the top', given: 'hello\n' },
  { name: 'a prototype key', given: '__proto__: 1\n' },
  { name: 'a key that every object has', given: 'constructor: 1\n' },
  {
    name: 'nesting deeper than 32',
    given: Array.from({ length: 40 }, (_, i) => `${' '.repeat(i)}k:`).join('\n'),
  },
]

t.test('reads what kubectl and controllers write as the complete parser does', (t) => {
  for (const { name, given } of UNDERSTOOD) {
    const got = scanBlockYaml(given)
    t.not(got, undefined, name)
    t.strictSame(got, reference(given), name)
  }
  t.end()
})

t.test('gives up on what it does not understand', (t) => {
  for (const { name, given } of GIVEN_UP) t.equal(scanBlockYaml(given), undefined, name)
  t.end()
})

/** Pieces that, strung together, come near everything the scanner knows and much that it doesn't. */
const PIECE = fc.constantFrom(
  ...[
    'a',
    'b: ',
    'c:',
    'key: value',
    '- ',
    '-',
    '\n',
    '\n',
    '\n  ',
    '\n    ',
    '\n ',
    ' ',
    '# c',
    ' # c',
  ],
  ...[
    '"q"',
    "'s'",
    '"e\\"x"',
    '"\\n"',
    "'i''s'",
    '[]',
    '{}',
    '[',
    '{',
    ']',
    '}',
    ',',
    ':',
    '::1',
    '192.0.2.1',
  ],
  ...[
    '1',
    '-1',
    '0',
    '-0',
    '+1',
    '012',
    '1e3',
    '1.5',
    '.5',
    '0x1',
    '0o7',
    '.inf',
    '.nan',
    '1_0',
    '1.2.3',
  ],
  ...[
    'true',
    'no',
    '~',
    'null',
    'Null',
    'nul',
    '|',
    '>',
    '&a',
    '*a',
    '!t',
    '%',
    '@',
    '`',
    '?',
    '---',
    '...',
  ],
  ...[
    '\t',
    '\r\n',
    'é',
    '\u2028',
    '<<',
    'x#y',
    '-x',
    'a b',
    'a:b',
    '\\',
    "'",
    '"',
    '\n- ',
    '\n  - ',
    ': ',
  ],
)
const SOUP = fc.array(PIECE, { maxLength: 14 }).map((pieces) => pieces.join(''))

const SCALAR = fc.constantFrom(
  'x',
  '"y"',
  "'z'",
  '1',
  '-7',
  'true',
  '',
  '[]',
  '{}',
  'a b',
  '192.0.2.1',
  'a#b',
  '1.5',
  'x # c',
  'null',
  '"a: b"',
  'a:b',
  '{a: 1}',
  '01',
)
const KEY = fc.constantFrom('a', 'b', 'c', 'd/e', 'f.g', '"h"', 'i j', 'k:l', '.', 'true', '5')
const GAP = fc.constantFrom('', '', '', '# c\n', '\n', '      # deep\n')

/** Block documents with now and then a line that is indented by one too many. */
const NESTED = fc.letrec<{
  block: (column: number) => string
  mapping: (column: number) => string
}>((tie) => {
  const child = fc.oneof(
    { weight: 3, arbitrary: SCALAR.map((s) => (_: number) => ` ${s}\n`) },
    {
      weight: 2,
      arbitrary: fc.tuple(tie('block'), fc.constantFrom(2, 2, 2, 0, 1, 4)).map(
        ([block, step]) =>
          (column: number) =>
            `\n${block(column + step)}`,
      ),
    },
  )
  const line = fc.tuple(GAP, KEY, child, fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 0, 0, 1))
  const mapping = fc
    .array(line, { minLength: 1, maxLength: 4 })
    .map(
      (lines) => (column: number) =>
        lines
          .map(
            ([gap, key, value, slip]) =>
              `${gap}${' '.repeat(column + slip)}${key}:${value(column)}`,
          )
          .join(''),
    )
  const item = fc.oneof(
    SCALAR.map((s) => (column: number) => `${' '.repeat(column)}- ${s}\n`),
    tie('mapping').map(
      (block) => (column: number) => `${' '.repeat(column)}- ${block(column + 2).trimStart()}`,
    ),
  )
  const sequence = fc
    .array(item, { minLength: 1, maxLength: 3 })
    .map((items) => (column: number) => items.map((i) => i(column)).join(''))
  return { mapping, block: fc.oneof({ depthSize: 'small' }, mapping, sequence) }
}).mapping

function agrees(text: string): boolean {
  const got = scanBlockYaml(text)
  if (got === undefined) return true
  const want = reference(text)
  return want !== undefined && JSON.stringify(got) === JSON.stringify(want)
}

t.test('never differs from the complete parser on random text', (t) => {
  fc.assert(fc.property(SOUP, agrees), { seed: 2026, numRuns: runs(20000) })
  t.end()
})

/** Pieces of flow collections. */
const FLOW_PIECE = fc.constantFrom(
  ...[
    '[',
    ']',
    '{',
    '}',
    '[',
    ']',
    '{',
    '}',
    ',',
    ', ',
    ' ,',
    ' ',
    ': ',
    ':',
    'a: ',
    '"k": ',
    "'k': ",
  ],
  ...['a', 'b c', '-', '- ', '-1', '1', '01', 'true', '~', 'null', '"q"', "'s'", '"a, b"', "'x]'"],
  ...[
    '#',
    ' # c',
    'a#b',
    '::1',
    'a:b',
    '*',
    '&a',
    '!t',
    '?',
    '? ',
    '%',
    '@',
    '\n',
    '\n  ',
    '|',
    '>',
    '.5',
    '<<: ',
  ],
)
const FLOW_SOUP = fc
  .tuple(
    fc.constantFrom('a: [', 'a: {', 'a:\n  - {', '- ['),
    fc.array(FLOW_PIECE, { maxLength: 9 }),
    fc.constantFrom(']', '}', ' }', ''),
  )
  .map(([open, pieces, close]) => `${open}${pieces.join('')}${close}`)

t.test('never differs from the complete parser on random flow collections', (t) => {
  let understood = 0
  const property = fc.property(FLOW_SOUP, (text) => {
    if (scanBlockYaml(text) !== undefined) understood++
    return agrees(text)
  })
  fc.assert(property, { seed: 30, numRuns: runs(20_000) })
  t.ok(understood > runs(1000), `understood ${understood}: the property must not be empty`)
  t.end()
})

t.test('never differs from the complete parser on random block documents', (t) => {
  let understood = 0
  let count = 0
  const property = fc.property(NESTED, (block) => {
    const text = block(0)
    count++
    if (scanBlockYaml(text) !== undefined) understood++
    return agrees(text)
  })
  fc.assert(property, { seed: 11, numRuns: runs(1500) })
  t.ok(
    understood > count / 10,
    `understood ${understood} of ${count}: the property must not be empty`,
  )
  t.end()
})

t.test('a long scalar that is nearly a number takes linear time', async (t) => {
  const digits = '1'.repeat(1_000_000)
  t.strictSame(scanBlockYaml(`a: ${digits}x`), { a: `${digits}x` })
})
