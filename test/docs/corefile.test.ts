import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { check } from '../../src/cli/check.ts'
import { scanKey } from '../../src/corefile/key.ts'
import { scanFences } from '../support/page.ts'
import { recordOutput } from '../support/recorded-output.ts'
import { root } from '../support/server.ts'

const FOLDER = 'docs/reference'
const PAGES = readdirSync(join(root, FOLDER)).filter((name) =>
  /^(corefile|kuadrant-.*)\.md$/.test(name),
)
/** Directories of an installed server, which a test does not have. */
const INSTALLED = /\/(?:etc|var\/lib)\/sextant\//g
const KEY_FILE =
  'key "sites.example." { algorithm hmac-sha256; secret "NoTCJU+DMqFWywaPyxSijrDEA/eC3nK0xi3AMEZuPVk="; };\n'

// Relative paths on the pages start at the repository's root.
process.chdir(root)
Object.assign(process.env, { LISTEN_ADDRESS: '127.0.0.1', PORT: '1053', REGION: 'eu' })

const read = (page: string): string => readFileSync(join(root, FOLDER, page), 'utf8')

for (const page of PAGES) {
  t.test(`the Corefiles of ${page} are valid`, async (t) => {
    const directory = t.testdir({ 'sites.key': KEY_FILE })
    const corefiles = scanFences(read(page)).filter(({ language }) => language === 'corefile')
    for (const { text } of corefiles) {
      const file = join(directory, 'Corefile')
      writeFileSync(file, text.replaceAll(INSTALLED, `${directory}/`))
      const { output, errors } = recordOutput()
      t.equal(await check(['-conf', file], output), 0, errors.join('; '))
    }
  })
}

t.test('keys mean what corefile.md says', async (t) => {
  const rows = [
    ...read('corefile.md').matchAll(/^\| `([^`]+)` \| (the reverse zones? .*|.*port \d+) \|$/gm),
  ]
  t.equal(rows.length, 4, 'rows of the table')
  for (const [, text = '', meaning = ''] of rows) {
    const keys = scanKey({ text, file: 'Corefile', line: 1 }, 53)
    const zones = [...meaning.matchAll(/`([^`]+)`/g)].map(([, zone]) => zone)
    const port = /port (\d+)/.exec(meaning)?.[1]
    if (port === undefined)
      t.strictSame(
        keys.map(({ zoneText }) => zoneText),
        zones,
        text,
      )
    else t.equal(keys[0]?.port, Number(port), text)
  }
})
