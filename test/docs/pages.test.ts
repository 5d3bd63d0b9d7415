import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { agrees, PageRun } from '../support/page.ts'
import { needs } from '../support/peer.ts'
import { freePort, root } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

t.test('outputs are compared line by line, … standing for anything', async (t) => {
  const table = [
    { want: ['a'], got: ['a'], ok: true },
    { want: ['a'], got: ['b'], ok: false },
    { want: ['a'], got: ['a', 'b'], ok: false },
    { want: ['a…c'], got: ['abc'], ok: true },
    { want: ['a.c'], got: ['abc'], ok: false },
    { want: ['…', 'z'], got: ['x', 'y', 'z'], ok: true },
    { want: ['…', 'z'], got: ['z', 'y'], ok: false },
    { want: [], got: ['a'], ok: false },
  ]
  for (const { want, got, ok } of table) t.equal(agrees(want, got), ok, `${want} ~ ${got}`)
})

const PAGES = [
  'tutorials/quick-start.md',
  'tutorials/two-sites.md',
  'reference/records.md',
  'how-to/drain-a-site.md',
  'how-to/explain.md',
  'how-to/fail-over.md',
  'how-to/import.md',
  'how-to/shift-traffic.md',
  'how-to/migrate-from-coredns.md',
  'how-to/migrate-from-gdnsd.md',
  'how-to/migrate-from-powerdns-lua.md',
  'how-to/troubleshoot.md',
  'how-to/what-if.md',
]

for (const page of PAGES.map((name) => `docs/${name}`)) {
  t.test(`${page} does what it shows`, needs('dig'), async (t) => {
    await PageRun.run(t, page, temporaryDirectory(t))
  })
}

t.test('README.md does what it shows', needs('dig'), async (t) => {
  const directory = temporaryDirectory(t)
  cpSync(join(root, 'zones'), join(directory, 'zones'), { recursive: true })
  const [dns, metrics, admin] = [await freePort(), await freePort(), await freePort()]
  const corefile = readFileSync(join(root, 'Corefile.example'), 'utf8')
  const fitted = corefile
    .replaceAll(':1053', `:${dns}`)
    .replaceAll(':9153', `:${metrics}`)
    .replaceAll(':9154', `:${admin}`)
  writeFileSync(join(directory, 'Corefile.example'), fitted)
  await PageRun.run(t, 'README.md', directory, { '1053': dns, '9153': metrics, '9154': admin })
})
