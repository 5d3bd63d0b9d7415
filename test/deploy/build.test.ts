import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { root } from '../support/server.ts'

// Long: it builds the project several times.

t.test('npm run build makes what changed or is missing, and nothing else', async (t) => {
  const directory = t.testdir({
    src: {
      'a.ts': 'export const a = 1\n',
      'b.ts': "import './a.ts'\n",
      cli: { 'embed.ts': "import type { A } from '../c.ts'\nexport const a: A = 1\n" },
      plugins: { plugin: { 'api.ts': 'export {}\n' } },
      'c.ts': 'export type A = 1\n',
    },
    '.ci': {},
  })
  for (const file of [
    '.ci/console.mjs',
    '.ci/types.mjs',
    'package.json',
    'tsconfig.json',
    'tsconfig.build.json',
  ]) {
    cpSync(join(root, file), join(directory, file))
  }
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
  const build = (): void => {
    execFileSync('npm', ['run', '--silent', 'build'], { cwd: directory, stdio: 'pipe' })
  }
  const path = (name: string): string => join(directory, 'dist', name)
  const written = (): number[] => ['a.js', 'b.js'].map((name) => statSync(path(name)).mtimeMs)

  build()
  const first = written()
  const types = ['cli/embed.d.ts', 'c.d.ts', 'a.d.ts'].map((name) => existsSync(path(name)))
  t.strictSame(types, [true, true, false], 'types of what is exported, and what that refers to')
  build()
  t.strictSame(written(), first, 'nothing changed: nothing is compiled')

  rmSync(path('b.js'))
  build()
  t.ok(existsSync(path('b.js')), 'a missing file is made again')

  writeFileSync(join(directory, 'src', 'a.ts'), 'export const a = 2\n')
  build()
  t.match(readFileSync(path('a.js'), 'utf8'), /a = 2/)

  writeFileSync(join(directory, 'src', 'd.ts'), 'export const d = 4\n')
  build()
  t.match(readFileSync(path('d.js'), 'utf8'), /d = 4/, 'a new source is compiled')

  rmSync(join(directory, 'dist'), { recursive: true })
  build()
  t.ok(existsSync(path('a.js')), 'a removed dist is made again')
})
