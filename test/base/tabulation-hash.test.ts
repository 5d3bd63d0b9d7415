import fc from 'fast-check'
import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { TABULATION_WORDS, TabulationHash } from '../../src/base/tabulation-hash.ts'

const random = new Random(3)
const tables = Int32Array.from({ length: TABULATION_WORDS }, () => random.next32())
const hash = new TabulationHash(tables)

t.test('the bits of the prefix count, and no others', async () => {
  const octets = fc.uint8Array({ minLength: 16, maxLength: 16 })
  fc.assert(
    fc.property(octets, fc.nat(128), fc.nat(127), fc.integer(), (address, bits, bit, word) => {
      const other = address.slice()
      other[bit >> 3]! ^= 0x80 >> (bit & 7)
      const isSame = hash.of(address, bits, word) === hash.of(other, bits, word)
      return isSame === bit >= bits
    }),
  )
})

t.test('every bit of the word counts', async (t) => {
  const address = new Uint8Array(16)
  const hashes = new Set([hash.of(address, 24, 0)])
  for (let bit = 0; bit < 32; bit++) hashes.add(hash.of(address, 24, 1 << bit))
  t.equal(hashes.size, 33)
  t.not(hash.of(address, 24, 0), new TabulationHash(tables.map((w) => ~w * 3)).of(address, 24, 0))
})
