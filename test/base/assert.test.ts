import t from 'tap'
import { assert } from '../../src/base/assert.ts'

t.test('assert throws with the name of the invariant', async (t) => {
  t.throws(() => assert(false, 'index < count'), { message: 'assertion failed: index < count' })
  t.doesNotThrow(() => assert(true, 'index < count'))
})
