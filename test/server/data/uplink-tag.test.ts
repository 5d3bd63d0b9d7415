import t from 'tap'
import {
  isOfGeneration,
  LINE_UPLINK,
  uplinkOf,
  uplinkTag,
} from '../../../src/server/data/uplink-tag.ts'

t.test('a tag says which instance and which uplink', async (t) => {
  for (const generation of [1, 2, 0x7fff, 0x8001, 1_000_000]) {
    for (const uplink of [0, 1, 77, LINE_UPLINK]) {
      const tag = uplinkTag(generation, uplink)
      t.equal(uplinkOf(tag), uplink)
      t.ok(isOfGeneration(tag, generation))
      t.notOk(isOfGeneration(tag, generation + 1))
      // All bits set tells the reader of a ring to go on at its start.
      t.ok(tag >= 0 && tag < 0xffffffff)
    }
  }
})
