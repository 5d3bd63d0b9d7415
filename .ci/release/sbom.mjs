// Software bills of materials in CycloneDX's JSON: of the npm package, and of each image and architecture.
import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from './run.mjs'

/** Writes sextant-VERSION.cdx.json, and IMAGE-VERSION-ARCH.cdx.json for each image. */
export async function makeSboms({ out, version, epochSeconds, programs, images }) {
  const write = async (sbom, name, suffix = '') => {
    const text = composeSbom(sbom, name, epochSeconds)
    await writeFile(join(out, `${name}-${version}${suffix}.cdx.json`), text)
  }
  for (const [index, { arch, base, nodeVersion }] of programs.entries()) {
    // From what is installed: with the lock file, npm leaves out packages that packages for developers need too.
    const sbom = JSON.parse(
      await run(join(base, 'sextant'), 'npm', 'sbom', '--sbom-format=cyclonedx'),
    )
    if (index === 0) await write(sbom, 'sextant')
    for (const { name, packages } of await images) {
      const parts = [nodePart(nodeVersion), ...packages.get(arch).map(debianPart)]
      await write(ofImage(sbom, parts), name, `-${arch}`)
    }
  }
}

/** npm writes a random serial number, the time and the name of the folder. Here they follow from the commit. */
function composeSbom({ serialNumber: _, ...sbom }, name, epochSeconds) {
  const timestamp = new Date(epochSeconds * 1000).toISOString()
  const { component } = sbom.metadata
  const metadata = { ...sbom.metadata, timestamp, component: { ...component, name } }
  const digest = createHash('sha256')
    .update(JSON.stringify({ ...sbom, metadata }))
    .digest('hex')
  const [, ...groups] = /^(.{8})(.{4}).(.{3}).(.{3})(.{12})/.exec(digest)
  // The form of a random UUID (RFC 9562 section 5.4), which the schema demands.
  const [a, b, c, d, e] = groups
  const serialNumber = `urn:uuid:${a}-${b}-4${c}-8${d}-${e}`
  return `${JSON.stringify({ ...sbom, serialNumber, metadata }, null, 2)}\n`
}

function ofImage(sbom, parts) {
  const component = { ...sbom.metadata.component, type: 'container' }
  const components = [...sbom.components, ...parts]
  return { ...sbom, metadata: { ...sbom.metadata, component }, components }
}

function nodePart(version) {
  const purl = nodePurl(version)
  return { 'bom-ref': purl, type: 'application', name: 'node', version, purl }
}

function debianPart({ name, version, arch }) {
  const purl = debianPurl({ name, version, arch })
  return { 'bom-ref': purl, type: 'library', name, version, purl }
}

export function nodePurl(version) {
  return `pkg:generic/node@${version}`
}

export function debianPurl({ name, version, arch }) {
  return `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${arch}`
}
