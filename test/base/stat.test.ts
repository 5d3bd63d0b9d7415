import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { statIfAny } from '../../src/base/stat.ts'

t.test('an existing file, a missing file, and a circular link', async (t) => {
  const directory = t.testdir({ file: 'x' })
  symlinkSync('circle', join(directory, 'circle'))
  t.ok(statIfAny(join(directory, 'file'))?.isFile())
  t.equal(statIfAny(join(directory, 'absent')), undefined)
  t.equal(statIfAny(join(directory, 'circle')), undefined)
})
