import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { root } from '../support/server.ts'

/** The part of docs/log-lines.mjs that this test uses. */
interface Generator {
  generateLogLines(src: string, page: string): string
  logEvents(src: string): readonly string[]
  logLines(src: string): ReadonlyMap<string, readonly string[]>
}

const src = join(root, 'src')

t.test('the page has lines of the source, in its order, and no other', async (t) => {
  const generator = (await import(join(root, 'docs/log-lines.mjs'))) as Generator
  const { generateLogLines, logLines } = generator
  const page = readFileSync(join(root, 'docs/reference/log-lines.md'), 'utf8')
  t.equal(generateLogLines(src, page), page, 'if not: node docs/generate.mjs')
  t.ok([...logLines(src).values()].flat().length > 90, 'the lines were found')
  for (const [heading, lines] of logLines(src)) t.ok(lines.length > 0, heading)

  const [row = ''] = page.split('\n').filter((line) => line.startsWith('| info | `drain ends: …`'))
  const stale = page.replace(row, `${row}\n| info | \`no such line\` | note |`)
  t.equal(generateLogLines(src, stale), page, 'rows of other lines are removed')
  const [head = ''] = /^(?:\|---){3}\|$/m.exec(page) ?? []
  const moved = page.replace(`${row}\n`, '').replace(head, `${head}\n${row}`)
  t.equal(generateLogLines(src, moved), page, 'rows are moved to the place of the call')
  const added = page.replace(head, `${head}\n| info | \`…: running …\` | note |`)
  t.match(
    generateLogLines(src, added),
    /^\| info \| `…: running …` \| note \|$/m,
    'a new row stays',
  )
})

/** Events that files of several folders name, because they mean the same there. */
const SHARED = [
  'kubeconfig-warning',
  'panic',
  'peer-unsigned',
  'reload-failed',
  'site-death',
  'snapshot-missing',
  'snapshot-not-used',
  'stack',
  'zone-signatures-expire',
  'zone-warning',
]

t.test('each event means one thing, and keeps its name', async (t) => {
  const { logEvents } = (await import(join(root, 'docs/log-lines.mjs'))) as Generator
  const events = logEvents(src)
  t.ok(events.length > 200, 'the events were found')
  for (const event of events) t.match(event, /^[a-z][a-z0-9]*(-[a-z0-9]+){0,4}$/)
  const folders = new Map<string, Set<string>>()
  for (const file of readdirSync(src, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts')) continue
    const source = readFileSync(join(src, file), 'utf8')
    for (const [, event = ''] of source.matchAll(/, '([a-z0-9-]+)'\)|^ +'([a-z0-9-]+)',\n *\)/gm)) {
      if (events.includes(event))
        folders.set(event, (folders.get(event) ?? new Set()).add(dirname(file)))
    }
  }
  const shared = [...folders].filter(([, { size }]) => size > 1).map(([event]) => event)
  t.strictSame(shared.sort(), SHARED, 'an event of several folders is added here on purpose')
})
