import fc from 'fast-check'
import t from 'tap'
import { JsonObjectSplitter } from '../../src/ovsdb/json-splitter.ts'

/** Pushes `octets` in parts of `size`; the texts, and the fault behind them. */
function split(octets: Uint8Array, size: number, octetsMax = 1000, depthMax = 8): string[] {
  const splitter = new JsonObjectSplitter(octetsMax, depthMax)
  const found: string[] = []
  for (let at = 0; at < octets.length; at += size) {
    const fault = splitter.push(octets.subarray(at, at + size), (text) => found.push(text))
    if (fault !== '') return [...found, fault]
  }
  return found
}

t.test('finds objects back to back, however they arrive', async (t) => {
  const objects = ['{}', '{"a":[1,{"b":"}{"}]}', '{"c":"\\\\"}', '{"d":"\\"}"}', '{"e":"ä€𝄞"}']
  const octets = Buffer.from(` ${objects.join('')}\r\n\t{`)
  for (let size = 1; size <= octets.length; size++) t.strictSame(split(octets, size), objects)
})

t.test('finds any JSON objects in parts of any size', async () => {
  const object = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }))
  fc.assert(
    fc.property(fc.array(object), fc.integer({ min: 1, max: 50 }), (objects, size) => {
      const texts = objects.map((object) => JSON.stringify(object))
      const found = split(Buffer.from(texts.join('')), size, 1e6, 99)
      return found.join('\n') === texts.join('\n')
    }),
  )
})

t.test('refuses what is not an object', async (t) => {
  const fault = 'received data that is not a JSON object'
  for (const text of ['[]', '1', '"a"', 'HTTP/1.1 400', '}', '\0']) {
    t.strictSame(split(Buffer.from(`{}${text}`), 3), ['{}', fault], JSON.stringify(text))
  }
})

t.test('bounds the size and the depth', async (t) => {
  const long = `{"a":"${'x'.repeat(994)}`
  t.strictSame(split(Buffer.from(`${long}"}`), 7), ['received a message longer than 1000 octets'])
  t.strictSame(split(Buffer.from(`${long}"}`), 9999), [
    'received a message longer than 1000 octets',
  ])
  t.strictSame(split(Buffer.from(`${long.slice(0, -2)}"}`), 7), [`${long.slice(0, -2)}"}`])
  const deep = `{"a":${'['.repeat(7)}${']'.repeat(7)}}`
  t.strictSame(split(Buffer.from(deep), 4), [deep])
  t.strictSame(split(Buffer.from(`{"a":[${deep}]}`), 4), ['received JSON nested deeper than 8'])
})

t.test('keeps no chunk, whose memory may be larger than its octets', async (t) => {
  const splitter = new JsonObjectSplitter(1000, 8)
  const found: string[] = []
  const chunk = new Uint8Array(1)
  for (const octet of Buffer.from('{"a":"b"}{"c":1}')) {
    chunk[0] = octet
    t.equal(
      splitter.push(chunk, (text) => found.push(text)),
      '',
    )
  }
  t.strictSame(found, ['{"a":"b"}', '{"c":1}'])
})
