import fc from 'fast-check'
import t from 'tap'
import { runWhole } from '../../src/base/slices.ts'
import { sortInSlices } from '../../src/base/sort.ts'

t.test('sorts as the built-in sort does, and keeps the order of equal values', (t) => {
  // The upper half of a value is its key.
  const values = fc.array(fc.tuple(fc.nat(9), fc.nat(0xffff)), { maxLength: 300 })
  const property = fc.property(values, (pairs) => {
    const given = Uint32Array.from(pairs.map(([key, rest]) => key * 0x1_0000 + rest))
    const want = [...given].sort((a, b) => (a >>> 16) - (b >>> 16))
    runWhole(sortInSlices(given, (a, b) => (a >>> 16) - (b >>> 16)))
    return want.join() === given.join()
  })
  fc.assert(property)
  t.end()
})

t.test('compares what is in order already once per step, and pauses', (t) => {
  const values = Uint32Array.from({ length: 20_000 }, (_, i) => i)
  let comparisons = 0
  const steps = sortInSlices(values, (a, b) => {
    comparisons++
    return a - b
  })
  let pauses = 0
  while (steps.next().done !== true) pauses++
  t.ok(comparisons < 20_000, `${comparisons} comparisons`)
  t.ok(pauses >= 4, `${pauses} pauses`)
  t.end()
})
