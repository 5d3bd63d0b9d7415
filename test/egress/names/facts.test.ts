import fc from 'fast-check'
import t from 'tap'
import { type AddressFact, mergeAddress } from '../../../src/egress/names/facts.ts'

const ms = fc.nat(8)
const fact: fc.Arbitrary<AddressFact> = fc
  .record({ lastSeenMs: ms, ttlSeconds: ms, endMs: ms })
  .map((fields) => ({ family: 1, address: '192.0.2.1', chain: [], ...fields }))

t.test('the merge of two facts about an address is a join', async () => {
  const printed = (one: AddressFact): string => JSON.stringify(Object.entries(one).sort())
  const equals = (a: AddressFact, b: AddressFact): boolean => printed(a) === printed(b)
  fc.assert(
    fc.property(fact, fact, fact, (a, b, c) => {
      const merge = mergeAddress
      return (
        equals(merge(a, b), merge(b, a)) &&
        equals(merge(merge(a, b), c), merge(a, merge(b, c))) &&
        equals(merge(a, a), a) &&
        equals(merge(merge(a, b), b), merge(a, b))
      )
    }),
    { numRuns: 1000 },
  )
})

t.test('the newest answer and the latest end are kept', async (t) => {
  const base = { family: 1 as const, address: '192.0.2.1', chain: [] }
  const old = { ...base, lastSeenMs: 0, ttlSeconds: 300, endMs: 300_000 }
  const next = { ...base, lastSeenMs: 10_000, ttlSeconds: 5, endMs: 15_000 }
  t.strictSame(mergeAddress(old, next), { ...next, endMs: 300_000 })
})
