import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { root } from '../support/server.ts'

/** The part of docs/log-lines.mjs that this test uses. */
interface Generator {
  generateLogLines(src: string, page: string): string
  logLines(src: string): ReadonlyMap<string, readonly string[]>
}

const src = join(root, 'src')

t.test('the page has each line of the source, and no other', async (t) => {
  const generator = (await import(join(root, 'docs/log-lines.mjs'))) as Generator
  const { generateLogLines, logLines } = generator
  const page = readFileSync(join(root, 'docs/reference/log-lines.md'), 'utf8')
  t.equal(generateLogLines(src, page), page, 'if not: node docs/generate.mjs')
  t.ok([...logLines(src).values()].flat().length > 90, 'the lines were found')
  for (const [heading, lines] of logLines(src)) t.ok(lines.length > 0, heading)

  const rows = page.split('\n').filter((line) => line.startsWith('| info | `…: running …`'))
  t.equal(rows.length, 1)
  const stale = page.replace(rows[0]!, '| info | `no such line` | note |')
  t.equal(generateLogLines(src, stale), page, 'rows are added and removed')
  const noted = page.replace(rows[0]!, '| info | `…: running …` | note |')
  t.equal(generateLogLines(src, noted), noted, 'notes are kept')
})
