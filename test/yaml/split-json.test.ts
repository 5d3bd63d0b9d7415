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

/** Both hashes of the first item of a list. */
function digest(item: string): string {
  const { digestA, digestB } = JsonSplitter.open(Buffer.from(`{"items": [${item}]}`))!.next()!
  return `${digestA} ${digestB}`
}

t.test('equal items have equal hashes, others have not', (t) => {
  const text = '{"a": "é\\"", "b": [1, 22, 333]}'
  // The second item starts at another offset of a word.
  const splitter = JsonSplitter.open(Buffer.from(`{"items": [${text},1,${text}]}`))!
  const [first, , third] = [splitter.next()!, splitter.next()!, splitter.next()!]
  t.equal(`${first.digestA} ${first.digestB}`, `${third.digestA} ${third.digestB}`)
  t.equal(first.isAscii, false)
  t.equal(splitter.next(), undefined)
  const digests = ['1', '12', '123', '1234', '12345'].map(digest)
  t.equal(new Set(digests).size, digests.length)
  const ones = '1'.repeat(20)
  const changed = [...ones].map((_, i) => digest(`${ones.slice(0, i)}2${ones.slice(i + 1)}`))
  t.equal(new Set([digest(ones), ...changed]).size, ones.length + 1)
  t.end()
})

t.test('lines and ASCII, whatever the offset of a word', (t) => {
  for (let spaces = 0; spaces < 8; spaces++) {
    const gap = ' '.repeat(spaces)
    const octets = Buffer.from(`{"items": [${gap}"a${gap}",\n{"b":${gap}\n\n1},"ü${gap}"\n]}`)
    const splitter = JsonSplitter.open(octets)!
    const items = [splitter.next()!, splitter.next()!, splitter.next()!]
    t.strictSame(
      items.map(({ line, isAscii }) => [line, isAscii]),
      [
        [1, true],
        [2, true],
        [4, false],
      ],
    )
  }
  t.end()
})

t.test('the longest item, and one octet more', (t) => {
  const longest = `"${'x'.repeat(DOCUMENT_OCTETS_MAX - 2)}"`
  t.equal(split(`{"items": [${longest}]}`)!.large, 0)
  t.equal(split(`{"items": [${longest} ]}`)!.large, 1)
  t.equal(split(`{"items": ["${longest}`)!.large, 1, 'without an end')
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
