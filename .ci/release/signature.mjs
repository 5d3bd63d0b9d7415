// Checksums of a release, the signature of these, and a statement of what it was made from (https://slsa.dev/provenance/v1).
import { createHash, createPrivateKey, createPublicKey, sign } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { digestOf, ReleaseError } from './run.mjs'
import { debianPurl, nodePurl } from './sbom.mjs'

const VARIABLE = 'SEXTANT_RELEASE_KEY'
const HOW = '`openssl genpkey -algorithm ed25519` makes a key'
const PAYLOAD = 'application/vnd.in-toto+json'

/** Reads the private key, and removes it from the environment of other programs. `undefined`: without a key. */
export function takeKey() {
  const pem = process.env[VARIABLE] ?? ''
  delete process.env[VARIABLE]
  if (pem === '') return undefined
  let key
  try {
    key = createPrivateKey(pem)
  } catch {
    throw new ReleaseError(`${VARIABLE} is not a private key in PEM without a password: ${HOW}`)
  }
  if (key.asymmetricKeyType !== 'ed25519') {
    throw new ReleaseError(`${VARIABLE} has the type ${key.asymmetricKeyType}, not ed25519: ${HOW}`)
  }
  return key
}

/** Writes SHA256SUMS, and with a key all that proves where the files of `out` come from. */
export async function finish(release, key) {
  const { out, version } = release
  if (key !== undefined) {
    const publicKey = createPublicKey(key)
    const envelope = seal(JSON.stringify(await describe(release)), key, publicKey)
    await writeFile(join(out, `sextant-${version}.intoto.jsonl`), `${JSON.stringify(envelope)}\n`)
    const pem = publicKey.export({ type: 'spki', format: 'pem' })
    await writeFile(join(out, 'release-key.pem'), pem)
  }
  const lines = (await digestsOf(out)).map(([name, digest]) => `${digest}  ${name}\n`)
  const sums = join(out, 'SHA256SUMS')
  await writeFile(sums, lines.join(''))
  if (key === undefined) {
    console.error(`release: nothing is signed, because ${VARIABLE} is not set. ${HOW}`)
    return
  }
  await writeFile(`${sums}.sig`, sign(null, await readFile(sums), key))
}

async function digestsOf(out) {
  const names = (await readdir(out)).sort()
  return Promise.all(names.map(async (name) => [name, await digestOf(join(out, name))]))
}

/** The statement, without times: two runs write the same. */
async function describe({ out, tree, version, commit, programs, images }) {
  const made = await images
  const files = (await digestsOf(out)).map(([name, sha256]) => ({ name, digest: { sha256 } }))
  const indexes = made.map(({ name, digest }) => {
    return { name: `${name}:${version}`, digest: { sha256: digest.replace('sha256:', '') } }
  })
  const nodes = programs.map(async ({ arch, node, nodeVersion }) => {
    const sha256 = await digestOf(join(node, 'node'))
    return { uri: `${nodePurl(nodeVersion)}?arch=${arch}`, digest: { sha256 } }
  })
  const purls = made.flatMap(({ packages }) => [...packages.values()].flat().map(debianPurl))
  const lock = await digestOf(join(tree, 'package-lock.json'))
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: [...files, ...indexes],
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'urn:sextant:release:1',
        externalParameters: { command: `npm run release -- ${version}` },
        resolvedDependencies: [
          { name: 'sextant', digest: { gitCommit: commit } },
          { name: 'package-lock.json', digest: { sha256: lock } },
          ...(await Promise.all(nodes)),
          ...[...new Set(purls)].sort().map((uri) => ({ uri })),
        ],
      },
      runDetails: { builder: { id: 'urn:sextant:release' } },
    },
  }
}

/** A DSSE envelope: https://github.com/secure-systems-lab/dsse/blob/master/protocol.md */
function seal(text, key, publicKey) {
  const signed = `DSSEv1 ${PAYLOAD.length} ${PAYLOAD} ${Buffer.byteLength(text)} ${text}`
  const sig = sign(null, Buffer.from(signed), key).toString('base64')
  const keyid = createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex')
  const payload = Buffer.from(text).toString('base64')
  return { payloadType: PAYLOAD, payload, signatures: [{ keyid, sig }] }
}
