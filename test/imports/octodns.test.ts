import fc from 'fast-check'
import t from 'tap'
import { InputError } from '../../src/base/errors.ts'
import { OCTODNS } from '../../src/imports/octodns/octodns.ts'
import { endpointLines, importFiles, refusal } from './import-files.ts'

const FILE = 'zones/example.com.yaml'

t.test('files that are no zone of octoDNS', async (t) => {
  const table: readonly [file: string, text: string, error: RegExp][] = [
    ['db', 'www:\n  type: A\n', /^db:1: the name of the file is not a zone; add --zone NAME$/],
    ['.yaml', 'www:\n  type: A\n', /the name of the file is not a zone/],
    [FILE, '', /^zones\/example\.com\.yaml:1: is not a mapping from names to records$/],
    [FILE, '---\n- a\n', /:1: is not a mapping/],
    [FILE, 'a: [', /^zones\/example\.com\.yaml:1: /],
    [FILE, 'a: 1\nb: 2\na: 3\n', /:3: Map keys must be unique/],
    [FILE, 'a: !include b.yaml\n*x', /:\d: /],
    [FILE, 'a: "x" # c\n'.repeat(20_000), /:1: /],
  ]
  for (const [file, text, error] of table) {
    t.match(
      refusal(() => importFiles(OCTODNS, { [file]: text })),
      error,
      text.slice(0, 40),
    )
  }
})

t.test('records that are not imported', async (t) => {
  const table: readonly [record: unknown, note: RegExp][] = [
    ['A', /: www: not imported: a record must be a mapping/],
    [{ type: 'SPF', value: 'x' }, /: www: not imported: SPF of www\.example\.com: /],
    [{ type: 'toString', value: 'x' }, /: not imported: toString of /],
    [{ type: 1, value: 'x' }, /: www\.type: not imported: type must be a string/],
    [{ type: 'A' }, /: www: not imported: the record has no value/],
    [{ type: 'A', value: {} }, /not imported: a value of A must be a string/],
    [{ type: 'A', values: [[]] }, /: www\.values\[0\]: not imported: a value of A must be /],
    [{ type: 'A', value: '192.0.2.300' }, /is not an IPv4 address/],
    [{ type: 'A', value: '192.0.2.1', ttl: 'soon' }, /: www\.ttl: not imported: ttl must be /],
    [
      { type: 'MX', value: { preference: 1 } },
      /: www\.value: not imported: MX has no field exchange/,
    ],
    [{ type: 'CNAME', values: ['a.', 'b.'] }, /has several targets/],
    [
      { type: 'A', value: '192.0.2.1', geo: { XX: [] } },
      /: www\.geo\.XX: not imported: "XX" is not a geo/,
    ],
    [{ type: 'A', dynamic: [] }, /: www\.dynamic: not imported: dynamic must be a mapping/],
    [
      { type: 'A', dynamic: { pools: { ams: '192.0.2.1' } } },
      /\.pools\.ams: not imported: ams must be /,
    ],
    [
      { type: 'A', dynamic: { pools: {}, rules: [1] } },
      /\.rules\[0\]: not imported: a rule must be /,
    ],
    [
      { type: 'A', dynamic: { pools: { a: { values: [{ value: '192.0.2.1', weight: -1 }] } } } },
      /\.weight: not imported: weight must be a number, got "-1"/,
    ],
    [
      { type: 'A', dynamic: { pools: { a: { fallback: 'b', values: [] } } } },
      /\.fallback: not imported: no pool "b"/,
    ],
    [
      { type: 'A', dynamic: { pools: { a: {} }, rules: [{ pool: 'a', subnets: ['x'] }] } },
      /\.subnets\[0\]: not imported: a subnet must be a network/,
    ],
    [{ type: 'A', dynamic: { pools: {}, rules: [{ pool: '__proto__' }] } }, /no pool "__proto__"/],
  ]
  for (const [record, note] of table) {
    const { documents, notes } = importFiles(OCTODNS, { [FILE]: JSON.stringify({ www: record }) })
    t.strictSame(documents, [], JSON.stringify(record))
    t.ok(
      notes.some((one) => note.test(one)),
      `${JSON.stringify(record)}: ${notes}`,
    )
  }
})

t.test('names', async (t) => {
  const record = { type: 'A', value: '192.0.2.1' }
  const names = ['', '*', 'constructor', '_a.b', '__proto__', 'é', 'a b']
  const text = `{${names.map((name) => `${JSON.stringify(name)}: ${JSON.stringify(record)}`).join()}}`
  const imported = importFiles(OCTODNS, { [FILE]: text })
  t.strictSame(
    endpointLines(imported),
    ['', '*.', 'constructor.', '_a.b.', '__proto__.'].map(
      (name) => `${name}example.com 3600 A 192.0.2.1`,
    ),
  )
  t.match(imported.notes, [/: é: not imported: spec\.rootHost /, /: a b: not imported: /])
  const given = importFiles(
    OCTODNS,
    { db: 'www:\n  type: A\n  value: 192.0.2.1\n' },
    'example.org.',
  )
  t.strictSame(endpointLines(given), ['www.example.org 3600 A 192.0.2.1'])
})

t.test('any YAML is imported, or refused with its place', async () => {
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.constantFrom('A', 'NS', '192.0.2.1', 'NA-US', 'p', '192.0.2.0/24', 1),
  )
  const keys = ['type', 'ttl', 'value', 'values', 'geo', 'dynamic', 'octodns', '__proto__']
  const pool = fc.record(
    { values: fc.array(fc.record({ value })), fallback: value },
    { requiredKeys: [] },
  )
  const rule = fc.record(
    { pool: value, geos: fc.array(value), subnets: fc.array(value) },
    { requiredKeys: [] },
  )
  const dynamic = fc.record({ pools: fc.record({ p: pool }), rules: fc.array(rule) })
  const plain = fc.dictionary(fc.constantFrom(...keys), value, { noNullPrototype: true })
  const record = fc.oneof(
    plain,
    dynamic.map((one) => ({ type: 'A', dynamic: one })),
  )
  const run = (records: object): void => {
    try {
      importFiles(OCTODNS, { [FILE]: JSON.stringify(records) })
    } catch (error) {
      if (!(error instanceof InputError)) throw error
    }
  }
  fc.assert(fc.property(fc.dictionary(fc.string(), record), run), { numRuns: 200 })
})
