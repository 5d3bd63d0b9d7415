import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import t from 'tap'
import { root } from './support/server.ts'

/*
 * Benches are run by hand, so a renamed export would break one unseen.
 */

const BENCH = join(root, 'bench')
const IMPORT = /import\s+(?:\{([^}]*)\}\s+from\s+)?(?:\* as \w+\s+from\s+)?'(\.[^']+)'/g

/** The source of a module; benches import what is built of it. */
function sourceOf(file: string, specifier: string): string {
  const path = relative(root, resolve(dirname(file), specifier))
  return join(root, path.startsWith('dist/') ? path.replace(/^dist(.*)\.js$/, 'src$1.ts') : path)
}

function isExported(text: string, name: string): boolean {
  const declared = `export (?:async )?(?:abstract )?(?:function\\*?|const|let|class) ${name}\\b`
  return new RegExp(`${declared}|export \\{[^}]*\\b${name}\\b`).test(text)
}

t.test('benches import what there is', (t) => {
  let imports = 0
  for (const name of readdirSync(BENCH, { recursive: true, encoding: 'utf8' })) {
    const file = join(BENCH, name)
    if (!name.endsWith('.mjs')) continue
    for (const [, list = '', specifier] of readFileSync(file, 'utf8').matchAll(IMPORT)) {
      const source = sourceOf(file, specifier!)
      if (!existsSync(source)) t.fail(`${name}: no ${specifier}`)
      else {
        const text = readFileSync(source, 'utf8')
        const names = list.split(',').map((word) => word.trim().split(' as ')[0]!)
        const missing = names.filter((word) => word !== '' && !isExported(text, word))
        t.strictSame(missing, [], `${name}: ${specifier}`)
        imports++
      }
    }
  }
  t.ok(imports > 300, `${imports} imports`)
  t.end()
})
