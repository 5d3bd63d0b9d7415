import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { temporaryDirectory } from '../support/temporary-directory.ts'

/* Source trees with few tests, for tests of what runs tests. */

export const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..')

/** What `npm test` needs. */
const COPIED = ['.taprc', 'package.json', 'test/run.mjs'].concat(
  ['javascript', 'run-file', 'run-output', 'tap-report', 'test-process', 'typescript-hooks'].map(
    (f) => `test/support/${f}.mjs`,
  ),
)

/** The start of each test file. `isFirst` is false when the file runs again. */
const START = `import t from 'tap'
import { appendFileSync, readFileSync } from 'node:fs'
const name = import.meta.url.replace(/.*\\/test\\//, '')
const isFirst = !readFileSync('log', 'utf8').includes(name)
appendFileSync('log', \`\${process.env.VERSION ?? ''}\${name} \`)
`
export const OWN = '// Own process: the case needs one.\n'

export const PASSES = "t.test('passes', async (t) => { t.ok(true); t.ok(true) })"
export const FAILS = "t.test('adds', async (t) => { t.equal(1, 2, 'one and one'); t.ok(true) })"
export const SKIPS = "t.test('skips', { skip: 'no dig' }, async () => {})"
export const THROWS =
  "t.test('throws', async () => { setTimeout(() => { throw new Error('late') }) })"
export const KILLED =
  "t.test('dies', async (t) => { t.ok(true); process.kill(process.pid, 'SIGKILL') })"
export const HANGS = "t.test('hangs', () => new Promise(() => setInterval(() => {}, 1000)))"

export function once(code: string): string {
  return `if (isFirst) ${code}\nelse ${PASSES}`
}

export type Tree = { readonly path: string; readonly bin: string }
export type Outcome = {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

export function spawn(cwd: string, args: readonly string[]): Outcome {
  // Without the variables of the tap that runs this file; with what a tap on a terminal sets.
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, FORCE_COLOR: '1' }
  return spawnSync(process.execPath, args, { cwd, env, encoding: 'utf8' })
}

/** Makes a source tree that has only the given test files. */
export function makeTree(t: Test, files: Readonly<Record<string, string>>): Tree {
  const path = temporaryDirectory(t)
  for (const file of COPIED) cpSync(join(root, file), join(path, file))
  symlinkSync(join(root, 'node_modules'), join(path, 'node_modules'))
  mkdirSync(join(path, 'src'))
  writeFileSync(join(path, 'log'), '')
  for (const [file, code] of Object.entries(files)) {
    mkdirSync(dirname(join(path, 'test', file)), { recursive: true })
    writeFileSync(join(path, 'test', file), START + code)
  }
  return { path, bin: dirname(process.execPath) }
}

/** Runs `npm test` in a tree, after the build. */
export function runNpmTest({ path }: Tree, ...args: readonly string[]): Outcome {
  return spawn(path, ['test/run.mjs', ...args])
}

/** The test files that have run, in their order. */
export function logOf({ path }: Tree): string {
  return readFileSync(join(path, 'log'), 'utf8')
}
