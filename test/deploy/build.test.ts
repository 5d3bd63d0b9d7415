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
    src: { 'a.ts': 'export const a = 1\n', 'b.ts': "import './a.ts'\n" },
  })
  for (const file of ['package.json', 'tsconfig.json', 'tsconfig.build.json']) {
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
  build()
  t.strictSame(written(), first, 'nothing changed: nothing is compiled')

  rmSync(path('b.js'))
  build()
  t.ok(existsSync(path('b.js')), 'a missing file is made again')

  writeFileSync(join(directory, 'src', 'a.ts'), 'export const a = 2\n')
  build()
  t.match(readFileSync(path('a.js'), 'utf8'), /a = 2/)

  writeFileSync(join(directory, 'src', 'c.ts'), 'export const c = 3\n')
  build()
  t.match(readFileSync(path('c.js'), 'utf8'), /c = 3/, 'a new source is compiled')

  rmSync(join(directory, 'dist'), { recursive: true })
  build()
  t.ok(existsSync(path('a.js')), 'a removed dist is made again')
})
