import * as fs from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import * as nextFile from '../../../src/base/persist/next-file.ts'
import { stampOf } from '../../../src/base/stat.ts'

/** Replaces the version `stamp`; returns the new stamp, or undefined if it was not replaced. */
function replace(
  path: string,
  stamp: string | undefined,
  text: string,
  { NextFile } = nextFile,
): string | undefined {
  const next = new NextFile(path, 0o644)
  try {
    next.write(text)
    next.sync()
    return next.put(stamp)
  } finally {
    next.close()
  }
}

t.test('a version replaces the one with that stamp', async (t) => {
  const path = join(t.testdir({}), 'serials')
  t.equal(stampOf(path), '')
  const stamp = replace(path, '', 'one')
  t.equal(stamp, stampOf(path))
  t.equal(fs.readFileSync(path, 'utf8'), 'one')
  // Left by a process that was killed while it wrote.
  fs.writeFileSync(`${path}.next`, 'to')
  t.ok(replace(path, stamp!, 'two'))
  t.equal(fs.readFileSync(path, 'utf8'), 'two')
  t.ok(replace(path, undefined, 'three'), 'any version')
  t.equal(fs.readFileSync(path, 'utf8'), 'three')
  t.notOk(fs.existsSync(`${path}.next`))
})

t.test('a version of another process is not replaced', async (t) => {
  const path = join(t.testdir({ serials: 'of another process' }), 'serials')
  t.equal(replace(path, '', 'ours'), undefined)
  t.equal(fs.readFileSync(path, 'utf8'), 'of another process')
  t.notOk(fs.existsSync(`${path}.next`))
})

/** The module, with another process that starts to write the same file before the call of `step`. */
function interrupted(t: Test, path: string, step: 'fsyncSync' | 'renameSync') {
  const next = `${path}.next`
  const start = (): void => {
    fs.rmSync(next)
    fs.writeFileSync(next, 'of the other')
  }
  const steps = {
    fsyncSync: (file: number): void => {
      start()
      fs.fsyncSync(file)
    },
    renameSync: (from: string, to: string): void => {
      start()
      fs.renameSync(from, to)
    },
  }
  return t.mockImport<typeof nextFile>('../../../src/base/persist/next-file.ts', {
    'node:fs': { ...fs, [step]: steps[step] },
  })
}

t.test('the unfinished version of another process is left to it', async (t) => {
  const path = join(t.testdir({}), 'serials')
  const mocked = await interrupted(t, path, 'fsyncSync')
  t.equal(replace(path, '', 'ours', mocked), undefined)
  t.equal(fs.readFileSync(`${path}.next`, 'utf8'), 'of the other')
  t.notOk(fs.existsSync(path))
})

t.test('a version that another process begins or removes at the same time', async (t) => {
  const path = join(t.testdir({}), 'serials')
  const next = `${path}.next`
  let begun = 0
  const rmSync = (file: string, options: object): void => {
    fs.rmSync(file, options)
    if (begun++ === 0) fs.writeFileSync(next, 'of the other')
  }
  const renameSync = (from: string, to: string): void => {
    if (begun < 4) fs.rmSync(next)
    fs.renameSync(from, to)
  }
  const mocked = await t.mockImport<typeof nextFile>('../../../src/base/persist/next-file.ts', {
    'node:fs': { ...fs, rmSync, renameSync },
  })
  t.equal(replace(path, '', 'ours', mocked), undefined, 'it removed the version')
  begun = 4
  t.ok(replace(path, '', 'ours', mocked))
  t.equal(fs.readFileSync(path, 'utf8'), 'ours')
})

t.test('a rename of the version of another process does not count as a write', async (t) => {
  const path = join(t.testdir({}), 'serials')
  const mocked = await interrupted(t, path, 'renameSync')
  t.equal(replace(path, '', 'ours', mocked), undefined)
})
