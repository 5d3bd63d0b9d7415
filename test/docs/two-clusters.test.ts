import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { scanFences } from '../support/page.ts'
import { root, runSextant } from '../support/server.ts'

const PAGE = 'docs/tutorials/two-clusters.md'
const SITE = 'deploy/examples/site'
const page = readFileSync(join(root, PAGE), 'utf8')
const files = new Map(scanFences(page).map(({ file, text }) => [file, text]))

function example(name: string): string {
  return readFileSync(join(root, SITE, name), 'utf8')
}

t.test('the Secrets are those of the example site, with one peer', async (t) => {
  const objectsOf = (text: string) => parseAllDocuments(text).map((one) => one.toJS())
  const [provider, ...others] = objectsOf(example('secrets.yaml'))
  const { stringData } = provider
  const want = { ...provider, stringData: { ...stringData, NAMESERVERS: '192.0.2.22:53' } }
  const got = objectsOf(files.get('deploy/examples/berlin/secrets.yaml') ?? '')
  t.strictSame(got, [want, ...others])
})

t.test('the nameservers are in the Corefile of the example site', async (t) => {
  const corefile = example('server.Corefile')
  const lines = [...page.matchAll(/^ {4,8}(nameserver .*)$/gm)]
  t.equal(lines.length, 2)
  for (const [, line = ''] of lines) t.ok(corefile.includes(` ${line}`), line)
})

for (const name of ['berlin', 'boston']) {
  t.test(`the record of ${name} is valid`, async (t) => {
    const directory = t.testdir({ Corefile: '.:1053 {\n    whoami\n}\n' })
    mkdirSync(join(directory, name))
    writeFileSync(join(directory, name, 'app.yaml'), files.get(`${name}.yaml`) ?? '')
    const args = ['check', '-conf', 'Corefile', '--manifests', name, '--strict']
    const { code, stdout } = await runSextant(directory, args)
    t.equal(code, 0)
    t.match(stdout, `read ${name}: 1 DNSRecord in 1 file`)
  })
}
