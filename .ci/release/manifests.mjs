// deploy/ and crds/ with the digests of the images. A commit cannot contain them, because they depend on it.
import { cp, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ReleaseError, writeTar } from './run.mjs'

/** Writes sextant-VERSION-manifests.tar.gz, and the Helm chart as sextant-VERSION-chart.tgz. */
export async function makeManifests({ tree, work, out, version, epochSeconds, images }) {
  const name = `sextant-${version}`
  const folder = join(work, 'manifests')
  // The chart has links to files that others have too.
  const how = { recursive: true, dereference: true }
  for (const part of ['deploy', 'crds']) {
    await cp(join(tree, part), join(folder, name, part), how)
  }
  const digests = new Map((await images).map(({ name, digest }) => [name, digest]))
  const paths = await readdir(folder, { recursive: true })
  for (const path of paths.filter((path) => /\.ya?ml$/.test(path))) {
    const file = join(folder, path)
    await writeFile(file, pin(await readFile(file, 'utf8'), version, digests))
  }
  await writeTar(join(out, `${name}-manifests.tar.gz`), folder, epochSeconds, [name])
  const chart = join(folder, name, 'deploy/chart')
  // Helm wants a folder with the name of the chart.
  const charts = join(work, 'charts')
  await cp(chart, join(charts, 'sextant'), { recursive: true })
  await writeTar(join(out, `${name}-chart.tgz`), charts, epochSeconds, ['sextant'])
}

/** Names our images by digest: in manifests, in `images:` of kustomizations, and in the values of the chart. */
function pin(text, version, digests) {
  const digestOf = (name) => {
    const digest = digests.get(name)
    if (digest === undefined) throw new ReleaseError(`manifests name an unknown image: ${name}`)
    return digest
  }
  return text
    .replace(/^([ -]*image: )([\w-]+):(\S+)$/gm, (line, key, name, tag) => {
      return tag === version ? `${key}${name}@${digestOf(name)}` : line
    })
    .replace(/^- name: ([\w-]+)\n(.*\n)*? +newTag: (.*)$/gm, (lines, name) => {
      return lines.replace(/newTag: .*$/, `digest: ${digestOf(name)}`)
    })
    .replace(/^( +)repository: ([\w-]+)\n\1tag: .*\n\1digest: ""$/gm, (lines, _, name) => {
      return lines.replace(/""$/, digestOf(name))
    })
}
