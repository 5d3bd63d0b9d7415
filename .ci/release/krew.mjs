// The plug-in of kubectl as an archive, and its manifest for krew.
import { chmod, cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ReleaseError, writeTar } from './run.mjs'

const BIN = 'sextant/dist/cli/kubectl-sextant.js'
/** Only servers use it, and it has machine code of one platform. */
const NATIVE = /node_modules\/(@koromix|koffi)(\/|$)/

/**
 * Writes sextant-VERSION-kubectl.tar.gz, which needs Node.js, and its manifest sextant-VERSION-krew.yaml. The
 * environment variable SEXTANT_RELEASE_URL is where the release will be published. JSON is YAML too.
 */
export async function makeKrew({ work, out, version, epochSeconds, programs }) {
  const [{ base }] = programs
  const folder = join(work, 'kubectl')
  await cp(join(base, 'sextant'), join(folder, 'sextant'), {
    recursive: true,
    filter: (path) => !NATIVE.test(path),
  })
  await chmod(join(folder, BIN), 0o755)
  const name = `sextant-${version}-kubectl.tar.gz`
  const { packed } = await writeTar(join(out, name), folder, epochSeconds, ['sextant'])
  const url = process.env.SEXTANT_RELEASE_URL ?? `https://localhost/sextant/v${version}`
  const manifest = krewManifest({
    version,
    uri: `${url.replace(/\/+$/, '')}/${name}`,
    sha256: packed,
  })
  await writeFile(
    join(out, `sextant-${version}-krew.yaml`),
    `${JSON.stringify(manifest, null, 2)}\n`,
  )
}

/** Throws ReleaseError for a value that krew would refuse. */
export function krewManifest({ version, uri, sha256 }) {
  check('version', version, /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/)
  check('SEXTANT_RELEASE_URL', uri, /^https:\/\/[^\s/]+\/\S+\.tar\.gz$/)
  check('checksum', sha256, /^[0-9a-f]{64}$/)
  return {
    apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
    kind: 'Plugin',
    metadata: { name: 'sextant' },
    spec: {
      version: `v${version}`,
      shortDescription: 'Ask and drain Sextant DNS servers',
      description:
        'Prints the status of the Sextant DNS servers of a cluster, explains their answers, compares changes, and drains endpoints.',
      caveats: 'Needs Node.js 20 or later as `node` in PATH.',
      platforms: [
        {
          selector: {
            matchExpressions: [{ key: 'os', operator: 'In', values: ['linux', 'darwin'] }],
          },
          uri,
          sha256,
          bin: BIN,
        },
      ],
    },
  }
}

function check(what, value, form) {
  if (!form.test(value)) throw new ReleaseError(`krew refuses the ${what} ${value}`)
}
