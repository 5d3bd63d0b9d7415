import { readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { freePort, root, runSextant, startServer } from '../support/server.ts'

const PICTURE = join(root, 'docs/pictures/terminal.svg')
const PORT = '1053'
/** What the picture shows: the arguments of `sextant`. */
const COMMANDS = [
  `query app.k.example.com A @127.0.0.1 -p ${PORT} +subnet=8.8.8.0/24 +short`,
  'explain app.k.example.com --client 81.2.69.1 -conf Corefile.example',
]
/** What paths begin with that the picture shows without: `node_modules` may be a link. */
const FOLDERS = [root, dirname(realpathSync(join(root, 'node_modules')))]
const COLUMNS = 100
const [LEFT, TOP, ADVANCE, LINE] = [20, 34, 7.83, 19]

// Writes the picture anew: npx tap run --snapshot test/docs/terminal.test.ts
t.test('the picture of a terminal in README.md shows what the commands print', async (t) => {
  const [port, metrics, admin] = [await freePort(), await freePort(), await freePort()]
  const example = readFileSync(join(root, 'Corefile.example'), 'utf8')
  const corefile = example
    .replaceAll(`:${PORT}`, `:${port}`)
    .replaceAll(':9153', `:${metrics}`)
    .replaceAll(':9154', `:${admin}`)
  const names = readdirSync(join(root, 'zones')).map((name) => `zones/${name}`)
  const files = Object.fromEntries(names.map((name) => [name, readFileSync(join(root, name))]))
  await startServer(t, { corefile, files })
  const lines: string[] = []
  for (const command of COMMANDS) {
    const args = command.replace(PORT, `${port}`).split(' ')
    const { code, stdout, stderr } = await runSextant(root, args)
    t.equal(code, 0, stderr)
    const text = FOLDERS.reduce((rest, folder) => rest.replaceAll(`${folder}/`, ''), stdout)
    lines.push(`$ sextant ${command}`, ...text.trimEnd().split('\n'))
  }
  const picture = draw([...lines, '$'])
  if (process.env.TAP_SNAPSHOT === '1') writeFileSync(PICTURE, picture)
  t.equal(readFileSync(PICTURE, 'utf8'), picture)
})

/** Draws lines of text as an SVG; long ones are cut. */
function draw(lines: readonly string[]): string {
  const width = Math.ceil(2 * LEFT + COLUMNS * ADVANCE)
  const height = 2 * TOP + (lines.length - 1) * LINE - 10
  const rows = lines.map((line, i) => {
    const kind = line.startsWith('$') ? ' class="typed"' : ''
    const shown = line.length > COLUMNS ? `${line.slice(0, COLUMNS - 1)}…` : line
    return `  <text${kind} x="${LEFT}" y="${TOP + i * LINE}">${escapeXml(shown)}</text>\n`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="t">
  <title id="t">A query to Sextant, and why a client gets its answer</title>
  <style>
    rect { fill: #0d1117 }
    text { font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 13px; fill: #c9d1d9; white-space: pre }
    .typed { fill: #58a6ff; font-weight: bold }
  </style>
  <rect width="${width}" height="${height}" rx="8"/>
${rows.join('')}</svg>
`
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
