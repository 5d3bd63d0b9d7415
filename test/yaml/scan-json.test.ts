import fc from 'fast-check'
import t from 'tap'
import { parseDocument } from 'yaml'
import { scanJson } from '../../src/yaml/scan-json.ts'
import { runs } from '../support/runs.ts'

/** What the complete parser says, as JSON; '' where it finds an error. */
function reference(text: string): string {
  const document = parseDocument(text, { logLevel: 'silent' })
  return document.errors.length > 0 ? '' : JSON.stringify(document.toJS())
}

const RECORD = {
  apiVersion: 'kuadrant.io/v1alpha1',
  kind: 'DNSRecord',
  metadata: { name: 'app', labels: {} },
  spec: { rootHost: 'a.example.org', endpoints: [{ recordTTL: 60, targets: ['192.0.2.1'] }] },
}

const UNDERSTOOD: readonly { name: string; given: string }[] = [
  { name: 'a record on one line', given: JSON.stringify(RECORD) },
  { name: 'a record on many lines', given: `${JSON.stringify(RECORD, null, 2)}\n` },
  { name: 'a document behind its marker', given: `---\n${JSON.stringify(RECORD)}\n` },
  { name: 'a document on the line of its marker', given: `--- ${JSON.stringify(RECORD)}\n` },
  { name: 'lines that end as on other systems', given: '---\r\n{"a":\r\n 1}\r\n' },
  { name: 'nothing', given: '{}' },
  {
    name: 'strings with quotes, backslashes, colons and brackets in them',
    given: '{"a": "\\"x\\":{", "b\\\\": "\\\\\\"[", "c": ":\\\\"}',
  },
  { name: 'escaped characters', given: '{"a": "\\u00e9\\ud83d\\ude00\\n\\/"}' },
  { name: 'numbers of all kinds', given: '{"a": [0, 1.5, -2e3, 12345678901234567890]}' },
  { name: 'one key in several mappings', given: '{"a": {"a": 1}, "b": [{"a": 2}, {"a": 3}]}' },
  { name: 'names that every object has', given: '{"constructor": 1, "toString": {"a": 2}}' },
]

const GIVEN_UP: readonly { name: string; given: string }[] = [
  { name: 'a key that is there twice', given: '{"a": 1, "a": 2}' },
  { name: 'the same, deep inside', given: '{"b": [{"a": {}, "c": 1, "a": {}}]}' },
  { name: 'the same, written in two ways', given: '{"a": 1, "\\u0061": 2}' },
  { name: 'a comment behind it', given: '{"a": 1} # one\n' },
  { name: 'a key without quotes', given: '{a: 1}' },
  { name: 'a comma too many', given: '{"a": 1,}' },
  { name: 'a text that ends too early', given: '{"a": "b' },
  { name: 'a text that ends in an escape', given: '{"a": "b\\"' },
  { name: 'a list', given: '[{"a": 1}]' },
  { name: 'a string', given: '"a"' },
  { name: 'a block mapping', given: 'a: {"b": 1}\n' },
  { name: 'what nests too deep', given: `${'{"a":'.repeat(33)}1${'}'.repeat(33)}` },
  { name: 'nothing at all', given: '' },
  { name: 'a marker alone', given: '---' },
]

t.test('JSON is read as the complete parser reads it', (t) => {
  for (const { name, given } of UNDERSTOOD) {
    t.equal(JSON.stringify(scanJson(given)), reference(given), name)
  }
  t.end()
})

t.test('everything else is given up', (t) => {
  for (const { name, given } of GIVEN_UP) t.equal(scanJson(given), undefined, name)
  t.end()
})

/** Texts that are JSON, and the same with a character put in, taken out or changed. */
const TEXT = fc
  .tuple(
    fc.dictionary(fc.constantFrom('a', 'b', 'c"', 'd\\', ':'), fc.jsonValue({ maxDepth: 3 })),
    fc.constantFrom(0, 1, 2),
  )
  .map(([value, indent]) => JSON.stringify(value, null, indent))
const BENT = fc
  .tuple(TEXT, fc.nat(), fc.constantFrom('', '"', '\\', ':', ',', '{', '}', '[', 'a', '"a":1,'))
  .map(([text, at, put]) => {
    const place = at % (text.length + 1)
    return text.slice(0, place) + put + text.slice(place + (at % 2))
  })

t.test('never differs from the complete parser', (t) => {
  let [count, understood] = [0, 0]
  const property = fc.property(fc.oneof(TEXT, BENT), (text) => {
    count++
    const got = scanJson(text)
    if (got === undefined) return true
    understood++
    return JSON.stringify(got) === reference(text)
  })
  fc.assert(property, { seed: 2026, numRuns: runs(4000) })
  t.ok(understood > count / 3, `understood ${understood} of ${count}: it must not be empty`)
  t.end()
})
