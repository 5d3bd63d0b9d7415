import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { lockFile } from '../../../src/base/persist/lock-file.ts'
import type { EndpointDrain } from '../../../src/health/drain/drain.ts'
import { scanDrains } from '../../../src/health/drain/drain-text.ts'
import { type DrainEdit, editDrainFile } from '../../../src/health/drain/edit-drain-file.ts'

function drainOf(line: string): EndpointDrain {
  return scanDrains(line, '').drains[0]!.drain
}

const add = (line: string): DrainEdit => {
  return () => ({ removed: [], added: [drainOf(line)] })
}

function selectorsIn(path: string): string[] {
  const { drains, faults } = scanDrains(readFileSync(path, 'utf8'), path)
  if (faults[0] !== undefined) throw faults[0]
  return drains.map(({ drain }) => drain.selector.text).sort()
}

const isLocked = (path: string): boolean => {
  return lstatSync(`${path}.lock`, { throwIfNoEntry: false }) !== undefined
}

t.test('edits at the same time lose nothing', async (t) => {
  const path = join(t.testdir({}), 'drains')
  const lines = Array.from({ length: 40 }, (_, i) => `site:s${i + 10}`)
  await Promise.all(lines.map((line) => editDrainFile(path, 0, add(line))))
  t.strictSame(selectorsIn(path), lines)
  t.notOk(isLocked(path))
})

t.test('an edit by hand at the same time is kept', async (t) => {
  const path = join(t.testdir({ drains: 'site:a\n' }), 'drains')
  let calls = 0
  await editDrainFile(path, 0, () => {
    if (++calls === 1) appendFileSync(path, 'site:b\n')
    return { removed: [], added: [drainOf('site:c')] }
  })
  t.equal(calls, 2)
  t.strictSame(selectorsIn(path), ['site:a', 'site:b', 'site:c'])
})

t.test('the lock of a process that died is removed', async (t) => {
  const path = join(t.testdir({ drains: '' }), 'drains')
  const { pid } = spawnSync(process.execPath, ['--version'])
  symlinkSync(String(pid), `${path}.lock`)
  await Promise.all(['site:a', 'site:b'].map((line) => editDrainFile(path, 0, add(line))))
  t.strictSame(selectorsIn(path), ['site:a', 'site:b'])
  t.notOk(isLocked(path))
})

t.test('the lock of an earlier process with the same id is removed', async (t) => {
  const path = join(t.testdir({ drains: '' }), 'drains')
  // As in a container that is restarted: its process is always number 1.
  symlinkSync(`${process.pid} 1`, `${path}.lock`)
  await editDrainFile(path, 0, add('site:a'))
  t.strictSame(selectorsIn(path), ['site:a'])
  t.notOk(isLocked(path))
})

t.test('the lock of a running process is respected', async (t) => {
  const path = join(t.testdir({ drains: '' }), 'drains')
  const release = await lockFile(path)
  let isEdited = false
  const edited = editDrainFile(path, 0, add('site:a')).then(() => {
    isEdited = true
  })
  await nextTurn()
  t.notOk(isEdited)
  release()
  await edited
  t.strictSame(selectorsIn(path), ['site:a'])
})

t.test('a symbolic link is kept', async (t) => {
  const folder = t.testdir({ real: 'site:a\n' })
  const path = join(folder, 'drains')
  symlinkSync(join(folder, 'real'), path)
  await editDrainFile(path, 0, add('site:b'))
  t.ok(lstatSync(path).isSymbolicLink())
  t.strictSame(selectorsIn(join(folder, 'real')), ['site:a', 'site:b'])
})

t.test('a file that cannot be written is one line', async (t) => {
  const folder = t.testdir({})
  const missing = join(folder, 'missing', 'drains')
  await t.rejects(editDrainFile(missing, 0, add('site:a')), { message: /drain file .*ENOENT/ })
  const path = join(folder, 'drains')
  mkdirSync(path)
  await t.rejects(editDrainFile(path, 0, add('site:a')), { message: /not a regular file/ })
  t.notOk(isLocked(path))
})

t.test('a file keeps its owner and permissions', async (t) => {
  const path = join(t.testdir({ drains: '' }), 'drains')
  const isRoot = process.getuid?.() === 0
  if (isRoot) chownSync(path, 65_534, 65_534)
  for (const mode of [0o600, 0o664]) {
    chmodSync(path, mode)
    await editDrainFile(path, 0, add(`site:s${mode}`))
    t.equal(lstatSync(path).mode & 0o777, mode)
    if (isRoot) t.equal(lstatSync(path).uid, 65_534)
  }
})

t.test('a file does not become longer than a file may be', async (t) => {
  const text = `${`# ${'x'.repeat(1021)}\n`.repeat(1023)}site:a\n`
  const path = join(t.testdir({ drains: text }), 'drains')
  const reason = 'é'.repeat(900)
  await t.rejects(editDrainFile(path, 0, add(`site:b reason=${reason}`)), {
    message: /drain file .*: it would be larger than 1 MiB; end drains first/,
  })
  t.equal(readFileSync(path, 'utf8'), text)
  t.notOk(isLocked(path))
  await editDrainFile(path, 0, (drains) => ({ removed: drains, added: [] }))
  t.strictSame(selectorsIn(path), [], 'drains can be ended')
})

t.test('a full disk leaves no lock', async (t) => {
  const path = join(t.testdir({ drains: 'site:a\n' }), 'drains')
  const module = new URL('../../../src/health/drain/edit-drain-file.ts', import.meta.url)
  const script = `
    const { editDrainFile } = await import(${JSON.stringify(module.href)})
    const same = (drains) => ({ removed: drains, added: drains })
    await editDrainFile(process.argv[1], 0, same).catch((error) => console.log(error.message))`
  // A limit of 0 octets for files, which fails each write as a full disk does.
  const node = [process.execPath, ...process.execArgv, '--input-type=module', '-e', script, path]
  const { stdout } = spawnSync('bash', ['-c', 'ulimit -f 0; exec "$@"', 'bash', ...node])
  t.match(String(stdout), /^drain file .*EFBIG/)
  t.notOk(isLocked(path))
  t.strictSame(selectorsIn(path), ['site:a'])
})
