import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { runWhole } from '../../../src/base/slices.ts'
import { mergeKeys, sortedKeys } from '../../../src/signing/zone/denial-plan.ts'

const keys = fc.array(fc.constantFrom('', 'a\0', 'b\0', 'a\0b\0', '\u0100\0', 'c\0'))

t.test('merged keys are those of both lists, sorted, each once', async () => {
  fc.assert(
    fc.property(keys, keys, (some, others) => {
      const merged = runWhole(mergeKeys(sortedKeys(some), sortedKeys(others)))
      assert.deepEqual(merged, sortedKeys([...some, ...others]))
    }),
  )
})

t.test('a merge pauses', async (t) => {
  const many = Array.from({ length: 20_000 }, (_, i) => String(i).padStart(5, '0'))
  let pauses = 0
  for (const _ of mergeKeys(many, many)) pauses++
  t.ok(pauses >= 8)
})
