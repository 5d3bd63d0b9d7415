import fc from 'fast-check'
import t from 'tap'
import { DOCUMENT_OCTETS_MAX } from '../../src/yaml/split-documents.ts'
import { JsonSplitter } from '../../src/yaml/split-json.ts'

/** The texts of the items, and what surrounds them. */
function split(text: string) {
  const octets = Buffer.from(text)
  const splitter = JsonSplitter.open(octets)
  if (splitter === undefined) return undefined
  const items: { line: number; text: string }[] = []
  for (let next = splitter.next(); next !== undefined; next = splitter.next()) {
    items.push({ line: next.line, text: octets.toString('utf8', next.start, next.end) })
  }
  return { items, rest: splitter.head + splitter.tail, large: splitter.largeLine }
}

t.test('the items of a list, parsed one by one, are those of the list', (t) => {
  const list = fc.record({
    kind: fc.string(),
    metadata: fc.jsonValue(),
    items: fc.array(fc.jsonValue(), { maxLength: 6 }),
    more: fc.jsonValue(),
  })
  const property = fc.property(list, fc.constantFrom(0, 1, 4), (value, indent) => {
    const found = split(JSON.stringify(value, null, indent))
    if (found === undefined) return false
    const items = found.items.map(({ text }) => JSON.parse(text))
    const whole = { ...JSON.parse(found.rest), items }
    return JSON.stringify(whole) === JSON.stringify(JSON.parse(JSON.stringify(value)))
  })
  fc.assert(property, { seed: 5, numRuns: 1000 })
  t.end()
})

t.test('other objects, and invalid JSON', (t) => {
  for (const text of [
    '',
    '[]',
    '{"a": {"items": [1]}}',
    '{"items": 1}',
    '{"a": "items", "b": [1]}',
  ]) {
    t.equal(split(text), undefined, text)
  }
  for (const text of ['{"items":[1,]}', '{"items":[1,,2]}', '{"items":[1', '{"items":["a]}']) {
    const { items, rest } = split(text)!
    t.throws(() => [rest, ...items.map((item) => item.text)].map((part) => JSON.parse(part)), text)
  }
  t.strictSame(
    split('{"items": [\n{"a": 1},\n\n {"a": 2}\n]}')!.items.map(({ line }) => line),
    [2, 4],
  )
  t.equal(split(`{"items": [1,\n"${'x'.repeat(2_000_000)}"]}`)!.large, 2)
  t.end()
})

t.test('a run of white space longer than a document ends the list', (t) => {
  const run = ' '.repeat(DOCUMENT_OCTETS_MAX + 1)
  t.equal(split(`{"items": [${run}1]}`)!.large, 1, 'before the first item')
  t.equal(split(`{"items": [\n1,\n${run}2]}`)!.large, 2, 'before the second')
  t.equal(split(`{"items": [1\n${run}]}`)!.large, 1, 'behind an item')
  t.equal(split(`{"items":${run}[1]}`), undefined, 'before the items')
  t.end()
})
