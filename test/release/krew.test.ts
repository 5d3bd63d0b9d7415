import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { needs } from '../support/peer.ts'
import { root } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { runIn } from './made.ts'

interface Krew {
  krewManifest(of: { version: string; uri: string; sha256: string }): object
  makeKrew(release: object): Promise<void>
}

const krew = (): Promise<Krew> => import(join(root, '.ci/release/krew.mjs'))
const BIN = 'sextant/dist/cli/kubectl-sextant.js'
const GOOD = {
  version: '1.2.3',
  uri: 'https://releases.example.com/sextant-1.2.3-kubectl.tar.gz',
  sha256: 'a'.repeat(64),
}

t.test('a manifest that krew would refuse is not made', async (t) => {
  const { krewManifest } = await krew()
  t.ok(krewManifest(GOOD))
  for (const [wrong, fault] of [
    [{ version: 'v1.2.3' }, /the version v1\.2\.3/],
    [{ version: '1.2' }, /the version 1\.2/],
    [{ uri: 'http://releases.example.com/a.tar.gz' }, /the SEXTANT_RELEASE_URL http:/],
    [{ uri: 'https://releases.example.com/a.zip' }, /the SEXTANT_RELEASE_URL https:/],
    [{ sha256: 'A'.repeat(64) }, /the checksum/],
    [{ sha256: '' }, /the checksum/],
  ] as const) {
    t.throws(() => krewManifest({ ...GOOD, ...wrong }), { message: fault })
  }
})

t.test('the archive has the checksum of the manifest, and the program', needs('tar'), async (t) => {
  const [work, out] = [temporaryDirectory(t), temporaryDirectory(t)]
  const base = join(work, 'base-amd64')
  const modules = 'sextant/node_modules'
  for (const path of [BIN, `${modules}/yaml/index.js`, `${modules}/koffi/index.js`]) {
    mkdirSync(dirname(join(base, path)), { recursive: true })
    writeFileSync(join(base, path), '')
  }
  const { makeKrew } = await krew()
  await makeKrew({ work, out, version: '1.2.3', epochSeconds: 0, programs: [{ base }] })
  const manifest = parse(readFileSync(join(out, 'sextant-1.2.3-krew.yaml'), 'utf8'))
  const archive = readFileSync(join(out, 'sextant-1.2.3-kubectl.tar.gz'))
  const sha256 = createHash('sha256').update(archive).digest('hex')
  t.match(manifest, {
    apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
    kind: 'Plugin',
    metadata: { name: 'sextant' },
    spec: { version: 'v1.2.3', platforms: [{ sha256, bin: BIN }] },
  })
  t.ok(manifest.spec.shortDescription.length <= 50)
  const folder = temporaryDirectory(t)
  const files = await runIn(folder, 'tar', '-xvzf', join(out, 'sextant-1.2.3-kubectl.tar.gz'))
  t.match(files, 'sextant/node_modules/yaml/index.js')
  t.notMatch(files, 'koffi', 'no machine code of one platform')
  t.ok(lstatSync(join(folder, BIN)).mode & 0o100, 'the program can be started')
})
