import fc from 'fast-check'
import t from 'tap'
import { DocumentShapes } from '../../src/yaml/document-shapes.ts'
import {
  parseAsciiDocument,
  parseDocuments,
  parseOneDocument,
  YamlProblem,
} from '../../src/yaml/parse-document.ts'
import { type ScalarSlot, scanBlockYaml } from '../../src/yaml/scan-block-yaml.ts'

const RECORD = `---
apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata:
  labels:
    kuadrant.io/coredns-zone-name: k.example.com
  name: app-1
  namespace: team-7
spec:
  endpoints:
  - dnsName: app-1.k.example.com
    labels: {}
    providerSpecific:
    - name: weight
      value: "120"
    - name: geo-code
      value: GEO-EU
    recordTTL: 60
    recordType: A
    targets:
    - 192.0.2.1
    - 192.0.2.2
  rootHost: app-1.k.example.com
`

/** Reads documents one after the other by what was learnt of those before; counts those that fitted. */
class Reader {
  readonly #shapes = new DocumentShapes()
  fitted = 0

  /** As JSON; undefined where neither a shape nor the scanner takes it. */
  read(text: string): string | undefined {
    const octets = Buffer.from(`xyz${text}xyz`)
    const end = octets.length - 3
    const known = this.#shapes.read(octets, 3, end)
    if (known !== undefined) {
      this.fitted++
      return JSON.stringify(known)
    }
    const slots: ScalarSlot[] = []
    const tree = scanBlockYaml(text, slots)
    if (tree === undefined) return undefined
    const json = JSON.stringify(tree)
    this.#shapes.learn(octets.subarray(3, end), slots, tree)
    return json
  }
}

/** The one document of a text by the complete parser; undefined where it has a fault. */
function reference(text: string): string | undefined {
  const values = parseDocuments(text)
  return values instanceof YamlProblem ? undefined : JSON.stringify(values[0] ?? null)
}

t.test('documents that differ in scalars alone are read by what was learnt of the first', (t) => {
  const table: readonly { name: string; from: string; to: string }[] = [
    { name: 'a longer name', from: 'app-1', to: 'app-12' },
    { name: 'a shorter name', from: 'team-7', to: 't' },
    { name: 'a number that becomes a string', from: 'recordTTL: 60', to: 'recordTTL: 60s' },
    { name: 'a number', from: 'recordTTL: 60', to: 'recordTTL: 6' },
    { name: 'a quoted scalar that becomes plain', from: '"120"', to: '120' },
    { name: 'a quoted scalar with escapes', from: '"120"', to: '"a \\"b\\" \\\\"' },
    { name: 'a plain scalar that becomes quoted', from: 'GEO-EU', to: "'it''s'" },
    { name: 'a scalar that becomes an empty list', from: 'GEO-EU', to: '[]' },
    { name: 'an empty mapping that becomes a string', from: '{}', to: 'x' },
    { name: 'a string that becomes null', from: 'GEO-EU', to: '~' },
    { name: 'a string that becomes a boolean', from: 'GEO-EU', to: 'true' },
    { name: 'the last scalar', from: 'rootHost: app-1', to: 'rootHost: *x'.replace('*', 'w') },
  ]
  for (const { name, from, to } of table) {
    const reader = new Reader()
    const other = RECORD.replaceAll(from, to)
    for (const text of [RECORD, other, RECORD, other, other]) {
      t.equal(reader.read(text), reference(text), name)
    }
    t.equal(reader.fitted, 4, `${name}: all but the first fitted`)
  }
  t.end()
})

t.test('a document of another shape is not taken for one that is known', (t) => {
  const table: readonly { name: string; from: string; to: string }[] = [
    { name: 'a scalar that is gone', from: ' GEO-EU', to: '' },
    { name: 'a comment where a scalar was', from: ' GEO-EU', to: ' # GEO-EU' },
    { name: 'a mapping where a scalar was', from: ' GEO-EU', to: '\n        a: b' },
    { name: 'a mapping where an item was', from: '- 192.0.2.1', to: '- a: b' },
    { name: 'a list where an item was', from: '- 192.0.2.1', to: '- - b' },
    { name: 'a key without a value where an item was', from: '- 192.0.2.1', to: '- a:' },
    { name: 'an item more', from: '    - 192.0.2.2\n', to: '    - 192.0.2.2\n    - 192.0.2.3\n' },
    { name: 'an item less', from: '    - 192.0.2.2\n', to: '' },
    { name: 'another key', from: 'recordTTL', to: 'recordTTl' },
    { name: 'a key more', from: '  rootHost', to: '  a: b\n  rootHost' },
    { name: 'a line that goes on', from: 'team-7', to: 'team-7\n    and more' },
    { name: 'a line that goes on at the end', from: /$/.source, to: '    more\n' },
    { name: 'a block scalar', from: ' GEO-EU', to: ' |\n        GEO-EU' },
    { name: 'an anchor', from: ' GEO-EU', to: ' &a GEO-EU' },
    { name: 'a scalar with a comment behind it', from: 'GEO-EU', to: 'GEO-NA # c' },
    { name: 'a scalar with spaces behind it', from: 'GEO-EU', to: 'GEO-NA  ' },
    { name: 'a tab behind a scalar', from: 'GEO-EU', to: 'GEO-NA\t' },
    { name: 'a carriage return', from: 'GEO-EU', to: 'GEO-NA\r' },
    { name: 'a colon', from: 'GEO-EU', to: 'GEO: NA' },
    { name: 'a float', from: 'recordTTL: 60', to: 'recordTTL: 6.0' },
    { name: 'no final newline', from: 'rootHost: app-1.k.example.com\n', to: 'rootHost: app-1' },
  ]
  for (const { name, from, to } of table) {
    const reader = new Reader()
    const other = from === '$' ? RECORD + to : RECORD.replace(from, to)
    for (const text of [RECORD, other, RECORD, other]) {
      const got = reader.read(text)
      if (got !== undefined) t.equal(got, reference(text), name)
    }
    t.not(other, RECORD, name)
    t.equal(reader.read(RECORD), reference(RECORD), `${name}, and then the first again`)
  }
  t.end()
})

t.test('some shapes are remembered beside each other', (t) => {
  const reader = new Reader()
  const texts = Array.from({ length: 4 }, (_, i) => `${RECORD}status:\n  c${i}: x\n`)
  for (let round = 0; round < 3; round++) {
    for (const text of texts) t.equal(reader.read(text), reference(text))
  }
  t.equal(reader.fitted, 8)
  for (const text of [...texts, `${RECORD}a: b\n`, ...texts]) {
    t.equal(reader.read(text), reference(text))
  }
  t.end()
})

t.test('of large documents the last one is remembered, and no small one forgotten for it', (t) => {
  const reader = new Reader()
  const large = (item: string, count: number): string =>
    `${RECORD}list:\n${Array.from({ length: count }, (_, i) => `- ${item}: ${i}\n`).join('')}`
  const [a, b, huge] = [large('a', 3000), large('b', 3000), large('a', 30_000)]
  const steps = [
    { text: RECORD, fits: false },
    { text: a, fits: false },
    { text: a.replace('- a: 77\n', '- a: other\n'), fits: true },
    { text: b, fits: false },
    { text: a, fits: false },
    { text: RECORD, fits: true },
    { text: a, fits: true },
    { text: huge, fits: false },
    { text: huge, fits: false },
  ]
  for (const [i, { text, fits }] of steps.entries()) {
    const { fitted } = reader
    t.equal(reader.read(text), JSON.stringify(scanBlockYaml(text)), `step ${i}`)
    t.equal(reader.fitted - fitted, Number(fits), `step ${i}`)
  }
  t.end()
})

const LINES = RECORD.split('\n')
const SCALAR = fc.constantFrom(
  ...['x', 'app-1', 'app-22', '"y"', "'z'", '1', '-7', 'true', '', '[]', '{}', 'a b', '192.0.2.1'],
  ...['a#b', '1.5', 'x # c', 'null', '"a: b"', 'a:b', '{a: 1}', '01', 'x ', ' x', '"a" b', '- a'],
  ...['a: b', 'a:', '-', '---', '...', '|', '&a', '"open', "'open", '%', '@', '? x', 'é', '\u2028'],
)
const KEYED = /^([ -]*(?:[\w./-]+: |- ))(.*)$/
/** A line of the record with another scalar, another line, or none. */
const EDIT = fc.record({
  line: fc.nat(LINES.length - 2),
  scalar: SCALAR,
  how: fc.constantFrom('scalar', 'scalar', 'scalar', 'scalar', 'gone', 'twice', 'deeper'),
})

function edit(text: string, { line, scalar, how }: { line: number; scalar: string; how: string }) {
  const lines = text.split('\n')
  const old = lines[line] ?? ''
  const [, head = old] = KEYED.exec(old) ?? []
  const changed = { scalar: [head + scalar], gone: [], twice: [old, old], deeper: [`  ${old}`] }
  lines.splice(line, 1, ...changed[how as keyof typeof changed])
  return lines.join('\n')
}

t.test('never differs from the complete parser, whatever was read before', (t) => {
  const reader = new Reader()
  let understood = 0
  let count = 0
  const isAscii = (text: string): boolean => Buffer.byteLength(text) === text.length
  const property = fc.property(
    fc.array(fc.array(EDIT, { maxLength: 3 }), { maxLength: 6 }),
    (documents) => {
      for (const edits of documents) {
        const text = edits.reduce(edit, RECORD)
        if (!isAscii(text)) continue
        const got = reader.read(text)
        count++
        if (got === undefined) continue
        understood++
        t.equal(got, reference(text), JSON.stringify(text))
      }
      return t.passing()
    },
  )
  fc.assert(property, { seed: 20261122, numRuns: 200 })
  t.ok(understood > count / 4, `understood ${understood} of ${count}`)
  t.ok(reader.fitted > understood / 4, `fitted ${reader.fitted} of ${understood}`)
  t.end()
})

t.test('a document after one that was further behind in a longer file', (t) => {
  const other = Buffer.from(RECORD.replace('name: app-1', 'name: app-2'))
  const far = Buffer.concat([Buffer.from(RECORD.repeat(20)), other])
  const start = RECORD.length * 20
  for (const [octets, from] of [
    [Buffer.from(RECORD), 0],
    [far, start],
    [Buffer.from(RECORD.replace('name: app-1', 'name: app-3')), 0],
  ] as const) {
    const text = octets.toString('latin1', from)
    const got = parseAsciiDocument(octets, from, octets.length)
    t.equal(JSON.stringify(got), JSON.stringify(parseOneDocument(text)))
  }
  t.end()
})

t.test('never differs from the scanner where octets of a document are changed', (t) => {
  const octet = fc.constantFrom(...'\n\n  ::#-"\'[]{}&*!|>%@`,.~0a\t\r\u0000\u007f'.split(''))
  const change = fc.record({
    at: fc.nat(RECORD.length),
    octet,
    how: fc.constantFrom('put', 'drop', 'replace'),
  })
  const property = fc.property(fc.array(change, { minLength: 1, maxLength: 3 }), (changes) => {
    let text = RECORD
    for (const { at, octet, how } of changes) {
      text =
        text.slice(0, at) + (how === 'drop' ? '' : octet) + text.slice(how === 'put' ? at : at + 1)
    }
    const octets = Buffer.from(text)
    const got = JSON.stringify(parseAsciiDocument(octets, 0, octets.length))
    return got === JSON.stringify(parseOneDocument(text))
  })
  fc.assert(property, { seed: 20261123, numRuns: 1000 })
  t.end()
})

t.test('a document too long to be worth it is read anew each time', (t) => {
  const reader = new Reader()
  const status = 'x'.repeat(300_000)
  // The complete parser takes no text of that length.
  const want = JSON.stringify({ ...JSON.parse(reference(RECORD)!), status })
  const text = `${RECORD}status: ${status}\n`
  for (let i = 0; i < 2; i++) t.equal(reader.read(text), want)
  t.equal(reader.fitted, 0)
  t.end()
})
