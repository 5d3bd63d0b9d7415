import * as fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ZoneImage } from '../../../src/zone/image/writer.ts'

t.test('a write of another process at the same place is not disturbed', async (t) => {
  const path = join(t.testdir({}), 'snapshot')
  const next = `${path}.next`
  // Both processes of a takeover write the same file: the other one begins while we write.
  const fsyncSync = (file: number): void => {
    fs.fsyncSync(file)
    fs.rmSync(next)
    fs.writeFileSync(next, 'of the other')
  }
  const { writeSnapshot } = await t.mockImport<
    typeof import('../../../src/zone/snapshot/write.ts')
  >('../../../src/zone/snapshot/write.ts', { 'node:fs': { ...fs, fsyncSync } })
  const image = new ZoneImage().capture()
  t.throws(() => writeSnapshot({ path, image, facts: '{}' }), /another process writes it/)
  t.equal(fs.readFileSync(next, 'utf8'), 'of the other')
  t.notOk(fs.existsSync(path))
})
