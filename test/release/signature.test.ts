import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { scanFences } from '../support/page.ts'
import { needs, run } from '../support/peer.ts'
import { root } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const PAGE = 'docs/how-to/install.md'
const COMMIT = '0123456789abcdef0123456789abcdef01234567'
const CODE = `
import { finish, takeKey } from './.ci/release/signature.mjs'
const [release] = process.argv.slice(1)
const key = takeKey()
if (process.env.SEXTANT_RELEASE_KEY !== undefined) throw new Error('other programs see the key')
await finish({ ...JSON.parse(release), tree: '.', programs: [], images: [] }, key)
`

const newKey = () => generateKeyPairSync('ed25519').privateKey
const pemOf = (key = newKey()) => String(key.export({ type: 'pkcs8', format: 'pem' }))

/** Ends a release of two files. Resolves to its folder and to what was printed. */
async function finish(t: Test, key: string) {
  const out = temporaryDirectory(t)
  writeFileSync(join(out, 'sextant-0.1.0.tgz'), 'a package')
  writeFileSync(join(out, 'sextant-0.1.0-notes.md'), 'notes')
  const release = JSON.stringify({ out, version: '0.1.0', commit: COMMIT })
  const variable = `SEXTANT_RELEASE_KEY=${key}`
  const script = ['-C', root, variable, process.execPath, '--input-type=module', '-e', CODE]
  return { out, ...(await run('env', [...script, release])) }
}

/** Runs the commands of the page in the folder of a release. */
async function check(out: string) {
  const fence = scanFences(readFileSync(join(root, PAGE), 'utf8')).find((f) => f.file === 'verify')!
  return run('sh', ['-euc', `cd "$0"\n${fence.text}`, out])
}

t.test(`${PAGE}: a signed release is verified`, needs('openssl', 'sha256sum'), async (t) => {
  const { out, stderr } = await finish(t, pemOf())
  t.equal(stderr, '')
  const { code, stdout, stderr: problem } = await check(out)
  t.equal(code, 0, stdout + problem)
  for (const text of ['Signature Verified Successfully', 'sextant-0.1.0.tgz: OK']) {
    t.match(stdout, text)
  }
  t.match(stdout, `"gitCommit":"${COMMIT}"`, 'where it comes from')

  for (const name of ['SHA256SUMS', 'sextant-0.1.0.tgz', 'sextant-0.1.0.intoto.jsonl']) {
    const { out } = await finish(t, pemOf())
    appendFileSync(join(out, name), ' ')
    t.not((await check(out)).code, 0, `an octet more in ${name}`)
  }
  const other = await finish(t, pemOf())
  writeFileSync(join(out, 'release-key.pem'), readFileSync(join(other.out, 'release-key.pem')))
  t.not((await check(out)).code, 0, 'another key')
})

t.test('the provenance is a DSSE envelope of the same key', async (t) => {
  const key = newKey()
  const { out } = await finish(t, pemOf(key))
  const { payloadType, payload, signatures } = JSON.parse(
    readFileSync(join(out, 'sextant-0.1.0.intoto.jsonl'), 'utf8'),
  )
  const body = Buffer.from(payload, 'base64')
  const head = `DSSEv1 ${payloadType.length} ${payloadType} ${body.length} `
  const signature = Buffer.from(signatures[0].sig, 'base64')
  const signed = Buffer.concat([Buffer.from(head), body])
  t.ok(verify(null, signed, createPublicKey(key), signature))
  const { subject } = JSON.parse(String(body))
  t.strictSame(
    subject.map(({ name }: { name: string }) => name),
    ['sextant-0.1.0-notes.md', 'sextant-0.1.0.tgz'],
  )
})

t.test('the same key signs alike', async (t) => {
  const pem = pemOf()
  const [one, two] = [await finish(t, pem), await finish(t, pem)]
  for (const name of ['SHA256SUMS', 'SHA256SUMS.sig', 'sextant-0.1.0.intoto.jsonl']) {
    t.strictSame(readFileSync(join(one.out, name)), readFileSync(join(two.out, name)), name)
  }
})

t.test('without a key, the release says that nothing is signed', async (t) => {
  const { out, code, stderr } = await finish(t, '')
  t.equal(code, 0)
  t.match(stderr, 'release: nothing is signed, because SEXTANT_RELEASE_KEY is not set')
  t.throws(() => readFileSync(join(out, 'SHA256SUMS.sig')))
  t.match(readFileSync(join(out, 'SHA256SUMS'), 'utf8'), /^[0-9a-f]{64} {2}sextant-0\.1\.0\.tgz$/m)
})

t.test('a key is refused', async (t) => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const locked = newKey().export({
    type: 'pkcs8',
    format: 'pem',
    cipher: 'aes-256-cbc',
    passphrase: 'secret',
  })
  const table: readonly [why: string, key: string, error: string][] = [
    ['a path', '/etc/release.pem', 'is not a private key in PEM'],
    ['a public key', String(publicKey.export({ type: 'spki', format: 'pem' })), 'is not a private'],
    ['a password', String(locked), 'is not a private key in PEM without a password'],
    ['RSA', pemOf(privateKey), 'has the type rsa, not ed25519'],
  ]
  for (const [why, key, error] of table) {
    const { code, stderr } = await finish(t, key)
    t.not(code, 0, why)
    t.match(stderr, `SEXTANT_RELEASE_KEY ${error}`, why)
    t.notMatch(stderr, 'PRIVATE KEY-', 'the key is not printed')
  }
})
