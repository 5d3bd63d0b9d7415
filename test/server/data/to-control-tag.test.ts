import t from 'tap'
import {
  isOfGeneration,
  LINES_TO_CONTROL,
  toControlOf,
  toControlTag,
} from '../../../src/server/data/to-control-tag.ts'

t.test('a tag says which instance and which channel', async (t) => {
  for (const generation of [1, 2, 0x7fff, 0x8001, 1_000_000]) {
    for (const toControl of [0, 1, 77, LINES_TO_CONTROL]) {
      const tag = toControlTag(generation, toControl)
      t.equal(toControlOf(tag), toControl)
      t.ok(isOfGeneration(tag, generation))
      t.notOk(isOfGeneration(tag, generation + 1))
      // With all bits set, the reader of a ring continues at its start.
      t.ok(tag >= 0 && tag < 0xffffffff)
    }
  }
})
