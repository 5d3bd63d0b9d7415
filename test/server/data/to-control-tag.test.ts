import t from 'tap'
import {
  isOfGeneration,
  LINES_TO_CONTROL,
  toControlOf,
  toControlTag,
} from '../../../src/server/data/to-control-tag.ts'

t.test('a tag says which instance and which uplink', async (t) => {
  for (const generation of [1, 2, 0x7fff, 0x8001, 1_000_000]) {
    for (const uplink of [0, 1, 77, LINES_TO_CONTROL]) {
      const tag = toControlTag(generation, uplink)
      t.equal(toControlOf(tag), uplink)
      t.ok(isOfGeneration(tag, generation))
      t.notOk(isOfGeneration(tag, generation + 1))
      // With all bits set, the reader of a ring continues at its start.
      t.ok(tag >= 0 && tag < 0xffffffff)
    }
  }
})
