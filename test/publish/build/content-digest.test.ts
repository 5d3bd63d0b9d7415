import fc from 'fast-check'
import t from 'tap'
import { scanGeoCode } from '../../../src/geo/code.ts'
import { ContentDigest } from '../../../src/publish/build/content-digest.ts'
import type { OwnerSet } from '../../../src/publish/build/owner-set.ts'
import { packSet } from '../../../src/publish/build/pack-set.ts'

const SET: fc.Arbitrary<OwnerSet> = fc.record({
  type: fc.nat(65535),
  ttlSeconds: fc.nat(),
  rdata: fc.array(fc.uint8Array({ maxLength: 20 }), { maxLength: 3 }),
  candidates: fc.array(
    fc.record({
      code: fc.constantFrom(undefined, scanGeoCode('IE'), scanGeoCode('GEO-NA')),
      isDefault: fc.boolean(),
      weight: fc.option(fc.nat(), { nil: undefined }),
      ttlSeconds: fc.nat(),
      rdataIndexes: fc.array(fc.nat(3), { maxLength: 3 }),
    }),
    { maxLength: 3 },
  ),
  endpoints: fc.constant([]),
  drainedCount: fc.nat(3),
})
const ENTRY = fc.tuple(fc.string({ maxLength: 12 }), SET)

/** The digest of one RRset by its definition. */
function digestOf(text: string): string {
  const lanes: [number, number, number][] = [
    [0x2c1b3c6d, 0x9e3779b1, 15],
    [0x297a2d39, 0x85ebca77, 11],
    [0x165667b1, 0xc2b2ae3d, 13],
    [0x7feb352d, 0x27d4eb2f, 11],
  ]
  const [a, b, c, d] = lanes.map(([start, factor, shift]) => {
    let hash = start
    for (const character of text.split('')) {
      hash = Math.imul(hash ^ character.charCodeAt(0), factor)
    }
    return BigInt((hash ^ (hash >>> shift)) >>> 0)
  }) as [bigint, bigint, bigint, bigint]
  const join = (high: bigint, low: bigint): string =>
    (((high << 20n) + (low >> 12n)) % 2n ** 52n).toString(16)
  return `${join(a, b)}-${join(c, d)}`
}

t.test('the digest of an RRset is that of its owner and its octets', (t) => {
  const property = fc.property(ENTRY, ([key, set]) => {
    const digest = new ContentDigest()
    digest.add(key, set)
    return digest.print() === digestOf(`${key} ${packSet(set)}`)
  })
  fc.assert(property, { seed: 20261121, numRuns: 500 })
  t.end()
})

t.test('removed content and order do not change the digest', (t) => {
  const property = fc.property(fc.array(ENTRY, { maxLength: 5 }), ENTRY, (entries, [key, set]) => {
    const one = new ContentDigest()
    const other = new ContentDigest()
    for (const entry of entries) one.add(...entry)
    other.add(key, set)
    for (const entry of entries.toReversed()) other.add(...entry)
    const differs = one.print() !== other.print()
    other.remove(key, set)
    return differs && one.print() === other.print()
  })
  fc.assert(property, { seed: 20261121, numRuns: 200 })
  t.equal(new ContentDigest().print(), '0-0')
  t.end()
})
