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

t.test(
  'the page has a link to the README of each directive, and what the directive does',
  async (t) => {
    const page = readFileSync(join(root, 'docs/reference/directives.md'), 'utf8')
    const rows = [
      ...page.matchAll(/^\| \[([\w-]+)\]\(\S+\/plugins\/([\w-]+)\/README\.md\) \| (.+\.) \|$/gm),
    ]
    const folders = readdirSync(PLUGINS, { withFileTypes: true }).filter((e) => e.isDirectory())
    t.strictSame(
      rows.map(([, name, folder]) => [name, folder]),
      folders.map(({ name }) => [name, name]).sort(),
    )
  },
)
