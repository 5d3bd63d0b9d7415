import fc from 'fast-check'
import t from 'tap'
import { DataSection } from '../../../src/geo/mmdb/data-section.ts'

/** A section of these octets, 7 octets into its file: errors count from the start of the file. */
function section(...octets: readonly number[]): DataSection {
  return sectionOf(Uint8Array.from(octets))
}

function sectionOf(octets: Uint8Array): DataSection {
  const bytes = Buffer.concat([Buffer.alloc(7, 0xff), octets])
  return new DataSection('x.mmdb', bytes, 7, octets.length)
}

const text = (value: string): number[] => [0x40 | value.length, ...Buffer.from(value)]
/** A map of two pairs: the value, and one behind it that shows where the value ended. */
const between = (value: readonly number[]): number[] => [
  ...[0xe2, ...text('v'), ...value],
  ...[...text('w'), ...text('end')],
]
const zeros = (count: number): number[] => new Array(count).fill(0)
const ones = (count: number): number[] => new Array(count).fill(0xff)

/** Every type of the specification, in the sizes that it may have. */
const VALUES: readonly { name: string; octets: number[]; print: string; uint?: number }[] = [
  { name: 'text', octets: text('abc'), print: 'abc' },
  { name: 'no text', octets: [0x40], print: '' },
  { name: 'text of 29 octets', octets: [0x5d, 0, ...ones(29).fill(97)], print: 'a'.repeat(29) },
  { name: 'text of 284', octets: [0x5d, 255, ...ones(284).fill(97)], print: 'a'.repeat(284) },
  { name: 'text of 285', octets: [0x5e, 0, 0, ...ones(285).fill(97)], print: 'a'.repeat(285) },
  {
    name: 'text of 4096',
    octets: [0x5e, 14, 227, ...ones(4096).fill(97)],
    print: 'a'.repeat(4096),
  },
  { name: 'text of 4097', octets: [0x5e, 14, 228, ...ones(4097).fill(97)], print: '' },
  {
    name: 'text of 65 821',
    octets: [0x5f, 0, 0, 0, ...new Array(65_821).fill(97)],
    // Longer than any value of a known database.
    print: '',
  },
  { name: 'double', octets: [0x68, 0xc0, 0x45, ...zeros(6)], print: '-42' },
  { name: 'octets', octets: [0x83, 1, 2, 3], print: '' },
  { name: 'uint16 0', octets: [0xa0], print: '0', uint: 0 },
  { name: 'uint16', octets: [0xa2, 0xff, 0xff], print: '65535', uint: 65_535 },
  { name: 'uint32, 3 octets', octets: [0xc3, 1, 0, 0], print: '65536', uint: 65_536 },
  { name: 'uint32', octets: [0xc4, ...ones(4)], print: '4294967295', uint: 4_294_967_295 },
  { name: 'int32', octets: [0x04, 0x01, ...ones(4)], print: '-1', uint: 0 },
  { name: 'int32, 1 octet', octets: [0x01, 0x01, 0xff], print: '255', uint: 255 },
  { name: 'int32 0', octets: [0x00, 0x01], print: '0', uint: 0 },
  { name: 'uint64', octets: [0x08, 0x02, ...ones(8)], print: '18446744073709551615' },
  { name: 'uint64, 2 octets', octets: [0x02, 0x02, 0x30, 0x39], print: '12345', uint: 12_345 },
  { name: 'uint64 0', octets: [0x00, 0x02], print: '0', uint: 0 },
  { name: 'uint128', octets: [0x10, 0x03, ...ones(16)], print: String(2n ** 128n - 1n) },
  { name: 'uint128, 2 octets', octets: [0x02, 0x03, 0x30, 0x39], print: '12345', uint: 12_345 },
  { name: 'uint128 0', octets: [0x00, 0x03], print: '0', uint: 0 },
  { name: 'array', octets: [0x02, 0x04, 0xa1, 1, ...text('x')], print: '' },
  { name: 'map', octets: [0xe1, ...text('k'), 0xa1, 1], print: '' },
  { name: 'false', octets: [0x00, 0x07], print: 'false' },
  { name: 'true', octets: [0x01, 0x07], print: 'true' },
  { name: 'float', octets: [0x04, 0x08, 0x3f, 0x80, 0, 0], print: '1' },
]

t.test('a value of each type is read, and stepped over', async (t) => {
  for (const { name, octets, print, uint } of VALUES) {
    const data = section(...between(octets))
    t.equal(data.print(data.find(0, 'v')), print, name)
    t.equal(data.print(data.find(0, 'w')), 'end', `${name}: what follows`)
    if (uint !== undefined) t.equal(data.uint(data.find(0, 'v')), uint, `${name} as a number`)
    const inArray = section(0x02, 0x04, ...octets, ...text('end'))
    t.equal(inArray.print(inArray.items(0)[1]!), 'end', `${name} in an array`)
  }
  t.equal(section(0x40).print(-1), '')
  t.equal(section(0x40).uint(-1), 0)
})

t.test('pointers of all sizes are followed', async (t) => {
  const table = [
    { at: 2047, pointer: [0x27, 0xff] },
    { at: 2048, pointer: [0x28, 0x00, 0x00] },
    { at: 526_335, pointer: [0x2f, 0xff, 0xff] },
    { at: 526_336, pointer: [0x30, 0x00, 0x00, 0x00] },
    { at: 600_000, pointer: [0x38, 0x00, 0x09, 0x27, 0xc0] },
    // The three bits behind the size class count for nothing here.
    { at: 600_000, pointer: [0x3f, 0x00, 0x09, 0x27, 0xc0] },
  ]
  for (const { at, pointer } of table) {
    const head = between(pointer)
    const gap = Buffer.alloc(at - head.length)
    const data = sectionOf(
      Buffer.concat([Uint8Array.from(head), gap, Uint8Array.from(text('here'))]),
    )
    t.equal(data.print(data.find(0, 'v')), 'here', `${at}`)
    t.equal(data.print(data.find(0, 'w')), 'end', `${at}: what follows`)
  }
})

t.test('invalid data is an error with its place', async (t) => {
  const nested = new Array(40).fill([0x01, 0x04]).flat()
  const table = [
    { name: 'a container', octets: [0x00, 0x05], want: /unknown type 12, at octet 10$/ },
    { name: 'an end marker', octets: [0x00, 0x06], want: /unknown type 13, at octet 10$/ },
    { name: 'a type beyond all', octets: [0x00, 0x09], want: /unknown type 16, at octet 10$/ },
    { name: 'an extended type 0', octets: [0x00, 0x00], want: /unknown type 0, at octet 10$/ },
    { name: 'uint16 of 3', octets: [0xa3, 1, 2, 3], want: /type 5 .*size 3, at octet 10$/ },
    { name: 'uint32 of 5', octets: [0xc5, ...zeros(5)], want: /type 6 .*size 5, at/ },
    { name: 'int32 of 5', octets: [0x05, 0x01, ...zeros(5)], want: /type 8 .*size 5, at/ },
    { name: 'uint64 of 9', octets: [0x09, 0x02, ...zeros(9)], want: /type 9 .*size 9, at/ },
    { name: 'uint128 of 17', octets: [0x11, 0x03, ...zeros(17)], want: /type 10 .*size 17, at/ },
    { name: 'double of 4', octets: [0x64, ...zeros(4)], want: /type 3 .*size 4, at/ },
    { name: 'float of 8', octets: [0x08, 0x08, ...zeros(8)], want: /type 15 .*size 8, at/ },
    { name: 'a boolean of 2', octets: [0x02, 0x07], want: /type 14 .*size 2, at/ },
    {
      name: 'text beyond the end',
      octets: [0x5d, 255],
      want: /a value that ends after the data, at/,
    },
    {
      name: 'a huge text',
      octets: [0x5f, 255, 255, 255],
      want: /a value that ends after the data, at/,
    },
    { name: 'a huge map', octets: [0xff, 255, 255, 255], want: /too many values, at/ },
    { name: 'a huge array', octets: [0x1f, 0x04, 255, 255, 255], want: /too many values, at/ },
    {
      name: 'half a size',
      octets: [0x5f],
      isLast: true,
      want: /a value that ends after the data, at octet/,
    },
    {
      name: 'half a pointer',
      octets: [0x38, 0],
      isLast: true,
      want: /a value that ends after the data, at/,
    },
    { name: 'nesting', octets: [...nested, 0xa0], want: /nested too deep, at/ },
    {
      name: 'a pointer out',
      octets: [0x3f, 255, 255, 255, 255],
      want: /ends after the data, at octet 4/,
    },
    {
      name: 'a pointer to itself',
      octets: [0x20, 3],
      want: /a pointer to a pointer, at octet 10$/,
    },
  ]
  for (const { name, octets, isLast, want } of table) {
    const data = section(...(isLast ? [0xe2, ...text('v'), ...octets] : between(octets)))
    const readAll = () => {
      data.print(data.find(0, 'v'))
      data.find(0, 'w')
    }
    t.throws(readAll, { message: want }, name)
    t.throws(readAll, { message: /^x\.mmdb is corrupt: its data has / }, name)
  }
})

t.test('pointers in a loop or a tree of pointers end at once', async (t) => {
  // Each level is an array of two pointers to the level before: 2^40 values, were they all visited.
  const levels = [0xa1, 0x01]
  let target = 0
  for (let level = 0; level < 40; level++) {
    const at = levels.length
    const pointer = [0x20 | (target >> 8), target & 0xff]
    levels.push(0x02, 0x04, ...pointer, ...pointer)
    target = at
  }
  const bomb = section(...levels)
  t.equal(bomb.items(target).length, 2)
  t.equal(bomb.print(target), '')
  // A map whose value is the map itself.
  const loop = section(0xe1, ...text('v'), 0x20, 0x00)
  t.equal(loop.findPath(0, ...new Array(50).fill('v')), 3, 'only the path that was asked')
  t.equal(loop.print(3), '')
  // 10 000 pairs of arrays with 10 000 items each.
  const wide = section(
    0xfe,
    0x25,
    0xf3,
    ...new Array(500).fill([0x40, 0x1e, 0x04, 0x25, 0xf3]).flat(),
  )
  t.throws(() => wide.find(0, 'v'), /^x\.mmdb is corrupt/)
})

t.test('one pass finds the same values as a search for each key', async (t) => {
  const KEYS = ['a', 'bb', 'b', 'asn', 'none']
  const pair = fc.record({
    key: fc.constantFrom('a', 'bb', 'b', 'asn', 'other', 'a1'),
    isPointer: fc.boolean(),
    value: fc.constantFrom(...VALUES.filter(({ octets }) => octets.length < 20)),
  })
  fc.assert(
    fc.property(fc.array(pair, { maxLength: 12 }), (pairs) => {
      // The texts that the keys of the map point to come before it.
      const before: number[] = []
      const map = [0xe0 | pairs.length]
      for (const { key, isPointer, value } of pairs) {
        if (isPointer) {
          map.push(0x20 | (before.length >> 8), before.length & 0xff)
          before.push(...text(key))
        } else map.push(...text(key))
        map.push(...value.octets)
      }
      const data = section(...before, ...map)
      const found = new Int32Array(KEYS.length)
      data.findEach(before.length, KEYS, found)
      t.strictSame(
        [...found],
        KEYS.map((key) => data.find(before.length, key)),
      )
    }),
    { numRuns: 200 },
  )
})
