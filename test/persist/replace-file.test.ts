import * as fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { replaceFile, stampOf } from '../../src/persist/replace-file.ts'

t.test('a version takes the place of the one that was looked at', async (t) => {
  const path = join(t.testdir({}), 'serials')
  t.equal(stampOf(path), '')
  const stamp = replaceFile(path, '', 'one')
  t.equal(stamp, stampOf(path))
  t.equal(fs.readFileSync(path, 'utf8'), 'one')
  // Left by a process that was killed while it wrote.
  fs.writeFileSync(`${path}.next`, 'to')
  t.ok(replaceFile(path, stamp!, 'two'))
  t.equal(fs.readFileSync(path, 'utf8'), 'two')
  t.notOk(fs.existsSync(`${path}.next`))
})

t.test('and of no other', async (t) => {
  const path = join(t.testdir({ serials: 'of another process' }), 'serials')
  t.equal(replaceFile(path, '', 'ours'), undefined)
  t.equal(fs.readFileSync(path, 'utf8'), 'of another process')
  t.notOk(fs.existsSync(`${path}.next`))
})

t.test('what another process has under way at the same place is left to it', async (t) => {
  const path = join(t.testdir({}), 'serials')
  const next = `${path}.next`
  const fsyncSync = (file: number): void => {
    fs.fsyncSync(file)
    fs.rmSync(next)
    fs.writeFileSync(next, 'of the other')
  }
  const mocked = await t.mockImport<typeof import('../../src/persist/replace-file.ts')>(
    '../../src/persist/replace-file.ts',
    { 'node:fs': { ...fs, fsyncSync } },
  )
  t.equal(mocked.replaceFile(path, '', 'ours'), undefined)
  t.equal(fs.readFileSync(next, 'utf8'), 'of the other')
  t.notOk(fs.existsSync(path))
})
