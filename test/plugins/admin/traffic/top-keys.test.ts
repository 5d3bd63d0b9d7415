import fc from 'fast-check'
import t from 'tap'
import { Random } from '../../../../src/base/random.ts'
import { TopHistory } from '../../../../src/plugins/admin/traffic/top-history.ts'
import { TopKeys } from '../../../../src/plugins/admin/traffic/top-keys.ts'

const MINUTE_MS = 60_000

t.test('counts are exact while all keys have a place', async (t) => {
  const streams = fc.array(fc.tuple(fc.constantFrom(...'abcdefgh'), fc.integer({ min: 1, max: 9 })))
  fc.assert(
    fc.property(streams, (stream) => {
      const keys = new TopKeys(8, new Random(1))
      const want = new Map<string, number>()
      for (const [key, weight] of stream) {
        keys.add(key, weight)
        want.set(key, (want.get(key) ?? 0) + weight)
      }
      const sorted = [...want.values()].sort((a, b) => b - a)
      const top = keys.top(8)
      return (
        top.every(({ key, weight }) => want.get(key) === weight) &&
        JSON.stringify(top.map(({ weight }) => weight)) === JSON.stringify(sorted)
      )
    }),
  )
  t.pass()
})

t.test('a flood of random names neither fills the top nor hides its names', async (t) => {
  const cases = fc.record({
    seed: fc.integer(),
    /** Random names for each real one. */
    flood: fc.integer({ min: 1, max: 50 }),
    real: fc.integer({ min: 1, max: 8 }),
    weight: fc.integer({ min: 1, max: 1000 }),
  })
  fc.assert(
    fc.property(cases, ({ seed, flood, real, weight }) => {
      const random = new Random(seed)
      const keys = new TopKeys(500, random)
      const rounds = 40_000
      for (let i = 0; i < rounds; i++) {
        const isReal = random.below(flood + 1) === 0
        keys.add(isReal ? `real${random.below(real)}` : `x${i}`, weight)
      }
      const top = keys.top(100)
      const fair = (rounds * weight) / (flood + 1) / real
      // At least 98 occurrences each, and random names never have two: the real ones lead.
      const leading = top.slice(0, real)
      return (
        top.length <= real + 5 &&
        leading.every((one) => one.key.startsWith('real')) &&
        leading.every((one) => one.weight > fair / 3 && one.weight < fair * 3)
      )
    }),
    { numRuns: 15 },
  )
  t.pass()
})

t.test('a history forgets steps that are over', async (t) => {
  const history = new TopHistory(MINUTE_MS, 60, new Random(1))
  const last = (minute: number, count: number) => {
    const { total, weights } = history.last(minute * MINUTE_MS, count)
    return { total, ...Object.fromEntries(weights) }
  }
  history.add(0, 'a', 2)
  history.add(MINUTE_MS - 1, 'a', 1)
  history.add(5 * MINUTE_MS, 'b', 4)
  t.strictSame(last(5, 1), { total: 4, b: 4 })
  t.strictSame(last(5, 10), { total: 7, b: 4, a: 3 })
  t.strictSame(last(59, 60), { total: 7, a: 3, b: 4 })
  t.strictSame(last(60, 60), { total: 4, b: 4 })
  t.strictSame(last(65, 60), { total: 0 })
})

t.test('a history keeps the heaviest keys of a step', async (t) => {
  const history = new TopHistory(MINUTE_MS, 60, new Random(1))
  for (let i = 0; i < 1000; i++) history.add(0, `${i}`, 1 + i)
  const { total, weights } = history.last(MINUTE_MS, 60)
  t.equal(total, 500_500)
  t.strictSame([weights.size, weights.get('999'), weights.has('899')], [100, 1000, false])
})
