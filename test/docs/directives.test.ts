import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { root } from '../support/server.ts'

const PLUGINS = join(root, 'src/plugins')

t.test('the page of directives is what their READMEs say', async (t) => {
  const check = () => execFileSync(process.execPath, [join(root, 'docs/generate.mjs'), '--check'])
  t.doesNotThrow(check)
})

t.test('the page has the code of the READMEs unchanged', async (t) => {
  const page = readFileSync(join(root, 'docs/reference/directives.md'), 'utf8')
  const folders = readdirSync(PLUGINS, { withFileTypes: true }).filter((e) => e.isDirectory())
  for (const { name } of folders) {
    const readme = readFileSync(join(PLUGINS, name, 'README.md'), 'utf8')
    const blocks = [...readme.matchAll(/^```[\s\S]*?^```$/gm)].map(([block]) => block)
    t.ok(blocks.length > 0, `${name} has code`)
    t.strictSame(
      blocks.filter((block) => !page.includes(block)),
      [],
      name,
    )
  }
})

t.test('the page links to its own sections, not to READMEs', async (t) => {
  const page = readFileSync(join(root, 'docs/reference/directives.md'), 'utf8')
  t.strictSame(page.match(/\]\([^)]*README\.md[^)]*\)/g), null)
})
