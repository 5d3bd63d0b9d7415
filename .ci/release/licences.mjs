// The licences of what a release holds. Each is one that its users may pass on under Apache-2.0.
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ReleaseError } from './run.mjs'

const ALLOWED = [
  ...['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'CC0-1.0', 'ISC', 'MIT'],
  ...['Python-2.0', 'Unlicense'],
]
const PACKAGE = /^(.*\/)?node_modules\/(@[^/]+\/)?[^/]+\/package\.json$/

/** Writes sextant-VERSION-licences.txt. Rejects if a package has a licence that is not allowed. */
export async function makeLicences({ out, version, programs, images }) {
  const [packages, nodes, debian] = [new Set(), new Set(), new Set()]
  for (const { base, node, nodeVersion } of programs) {
    for (const line of await packageLines(join(base, 'sextant'))) packages.add(line)
    const text = await readFile(join(node, 'LICENSE'), 'utf8')
    if (!text.startsWith('Node.js is licensed for use as follows')) {
      throw new ReleaseError(`${node}/LICENSE is not that of Node.js`)
    }
    nodes.add(`node ${nodeVersion}: MIT. The licences of its parts are in its LICENSE file`)
  }
  for (const image of await images) {
    for (const one of [...image.packages.values()].flat()) debian.add(`${one.name} ${one.version}`)
  }
  const text = `# npm packages, of which geo-whois-asn-country-mmdb is the country database
${[...packages].sort().join('\n')}

# Node.js: in the images and the Debian packages
${[...nodes].join('\n')}

# Debian packages, in the images: the licences are in usr/share/doc/*/copyright there
${[...debian].sort().join('\n')}
`
  await writeFile(join(out, `sextant-${version}-licences.txt`), text)
}

/** Resolves to a line for the program in `folder` and for each of its packages. */
async function packageLines(folder) {
  const paths = (await readdir(folder, { recursive: true })).filter((path) => PACKAGE.test(path))
  return Promise.all(
    ['package.json', ...paths].map(async (path) => {
      const { name, version, license } = JSON.parse(await readFile(join(folder, path), 'utf8'))
      if (ALLOWED.includes(license)) return `${name} ${version}: ${license}`
      throw new ReleaseError(
        `${name} ${version} has the licence ${JSON.stringify(license)}, which is not in the list of \
.ci/release/licences.mjs: use another package, or add the licence`,
      )
    }),
  )
}
