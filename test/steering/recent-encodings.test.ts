import fc from 'fast-check'
import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { RRType } from '../../src/dns/iana/types.ts'
import { scanGeoCode } from '../../src/geo/code.ts'
import type { Candidate } from '../../src/steering/candidate.ts'
import { SteeringTable } from '../../src/steering/table.ts'

const createTable = (): SteeringTable =>
  new SteeringTable({ locator: undefined, random: new Random(1), onError: t.fail })

/** Candidates of endpoints: those of one endpoint share their array of indexes. */
const set = fc
  .array(
    fc.record({
      codes: fc.uniqueArray(fc.constantFrom('GEO-EU', 'US', 'US-CA', '*'), { maxLength: 2 }),
      isDefault: fc.boolean(),
      weight: fc.option(fc.constantFrom(0, 1, 120), { nil: undefined }),
      ttlSeconds: fc.constantFrom(30, 60),
      rdataIndexes: fc.uniqueArray(fc.nat(3), { minLength: 1, maxLength: 2 }),
    }),
    { minLength: 1, maxLength: 9 },
  )
  .map((endpoints) =>
    endpoints.flatMap(({ codes, ...rest }): Candidate[] =>
      codes.length === 0
        ? [{ code: undefined, ...rest }]
        : codes.map((text) => ({ code: scanGeoCode(text), ...rest })),
    ),
  )
const type = fc.constantFrom(RRType.A, RRType.CNAME)

t.test('words found again are those composed anew', (t) => {
  const table = createTable()
  const property = fc.property(set, type, (candidates, type) => {
    const words = table.compose(candidates, type)
    const anew = createTable()
    anew.restore(table.policies)
    t.equal(table.compose([...candidates], type), words, 'the same words, not just equal ones')
    t.strictSame(words, anew.compose(candidates, type))
  })
  fc.assert(property, { seed: 20261121, numRuns: 500 })
  t.end()
})

t.test('endpoints with equal targets are not one endpoint with two codes', async (t) => {
  const table = createTable()
  const [eu, us] = [scanGeoCode('GEO-EU'), scanGeoCode('US')]
  const rest = { isDefault: true, weight: 5, ttlSeconds: 60 }
  const shared = [0]
  const one = [eu, us].map((code) => ({ code, ...rest, rdataIndexes: shared }))
  const two = [eu, us].map((code) => ({ code, ...rest, rdataIndexes: [0] }))
  t.notSame(table.compose(one, RRType.A), table.compose(two, RRType.A))
})

t.test('more sets than the cache holds still get their own encoding', async (t) => {
  const table = createTable()
  const compose = (weight: number): Uint32Array | undefined =>
    table.compose(
      [{ code: undefined, isDefault: false, weight, ttlSeconds: 60, rdataIndexes: [0] }],
      RRType.A,
    )
  const first = compose(1)
  for (let weight = 2; weight < 10_000; weight++) compose(weight)
  t.not(compose(1), first, 'long forgotten')
  t.strictSame(compose(1), first)
})
