// Container images as OCI image layouts: https://github.com/opencontainers/image-spec. A layout is JSON and blobs that
// are named by their digests, so no tool for containers is necessary.
import { createHash } from 'node:crypto'
import { copyFile, link, mkdir, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  describePackage,
  fetchPackages,
  LIBRARIES,
  TOOLS,
  unpackLibraries,
} from './debian-libraries.mjs'
import { writeTar } from './run.mjs'

const MAIN = '/sextant/dist/main.js'
/** Corefiles name files relative to it. */
const CONFIGURATION = '/etc/sextant'
/** An unprivileged user. It is a number, so that the kubelet can check runAsNonRoot. */
const USER = '65532:65532'
const SERVER = {
  name: 'sextant',
  packages: LIBRARIES,
  config: {
    User: USER,
    Cmd: ['serve', '-conf', '/etc/sextant/Corefile'],
    ExposedPorts: { '1053/tcp': {}, '1053/udp': {} },
  },
}
/** It adds rules to the kernel, so it is root with the capability NET_ADMIN. */
const NODE_AGENT = {
  name: 'sextant-node',
  packages: [...LIBRARIES, ...TOOLS],
  config: { Cmd: ['node'] },
}
const IMAGES = [SERVER, NODE_AGENT]

const TYPE = 'application/vnd.oci.image'
/** Layers keep their digests from version to version if their files are the same, so they have no time. */
const EPOCH_SECONDS = 0
const FILES = {
  'etc/passwd': `root:x:0:0::/:/\nsextant:x:${USER}::/:/\n`,
  'etc/group': 'root:x:0:\nsextant:x:65532:\n',
  'etc/nsswitch.conf': 'hosts: files dns\n',
}

/**
 * Writes NAME-VERSION-image.tar for each image, with one index for all architectures. Resolves to the name of each
 * image, its digest, and the Debian packages that it has by architecture.
 */
export async function makeImages(release) {
  const { work, programs } = release
  await mkdir(join(work, 'blobs'))
  const layers = await Promise.all(programs.map((program) => makeLayers(work, program)))
  return Promise.all(IMAGES.map((image) => makeImage(release, image, layers)))
}

/** Resolves to the layers of a program, and for each image the layer with its libraries and their packages. */
async function makeLayers(work, { arch, base, node, nodeVersion }) {
  const program = join(work, `node-${arch}`)
  await mkdir(join(program, 'usr/local/bin'), { recursive: true })
  await copyFile(join(node, 'node'), join(program, 'usr/local/bin/node'))
  await mkdir(join(program, 'usr/share/doc/node'), { recursive: true })
  await copyFile(join(node, 'LICENSE'), join(program, 'usr/share/doc/node/LICENSE'))
  const own = Promise.all([makeLayer(work, program), makeLayer(work, base)])
  const libraries = new Map()
  for (const { name, packages } of IMAGES) {
    const folder = join(work, `${name}-${arch}`)
    const paths = await fetchPackages(work, arch, packages)
    await unpackLibraries(paths, folder)
    await mkdir(join(folder, CONFIGURATION), { recursive: true })
    for (const [path, text] of Object.entries(FILES)) await writeFile(join(folder, path), text)
    await copyFile('/etc/os-release', join(folder, 'etc/os-release'))
    const described = await Promise.all(paths.map(describePackage))
    libraries.set(name, { layer: await makeLayer(work, folder), packages: described })
  }
  return { arch, nodeVersion, own: await own, libraries }
}

async function makeLayer(work, folder) {
  const path = `${folder}.tar.gz`
  const { plain, packed } = await writeTar(path, folder, EPOCH_SECONDS)
  const { size } = await stat(path)
  await rename(path, join(work, 'blobs', packed))
  const descriptor = { mediaType: `${TYPE}.layer.v1.tar+gzip`, digest: `sha256:${packed}`, size }
  return { descriptor, diffId: `sha256:${plain}` }
}

async function makeImage({ work, out, version, epochSeconds }, image, programs) {
  const { name, config } = image
  const created = new Date(epochSeconds * 1000).toISOString()
  const layout = join(work, `${name}-layout`)
  const blobs = join(layout, 'blobs/sha256')
  await mkdir(blobs, { recursive: true })
  const putJson = async (mediaType, value) => {
    const text = JSON.stringify(value)
    const digest = createHash('sha256').update(text).digest('hex')
    await writeFile(join(blobs, digest), text)
    return { mediaType, digest: `sha256:${digest}`, size: Buffer.byteLength(text) }
  }
  const labels = {
    'org.opencontainers.image.title': name,
    'org.opencontainers.image.version': version,
    'org.opencontainers.image.licenses': 'Apache-2.0',
  }
  const manifests = []
  for (const { arch, nodeVersion, own, libraries } of programs) {
    const layers = [libraries.get(name).layer, ...own]
    for (const { descriptor } of layers) {
      const digest = descriptor.digest.slice('sha256:'.length)
      await link(join(work, 'blobs', digest), join(blobs, digest))
    }
    const platform = { architecture: arch, os: 'linux' }
    const about = await putJson(`${TYPE}.config.v1+json`, {
      created,
      ...platform,
      config: {
        ...config,
        Entrypoint: ['node', MAIN],
        WorkingDir: CONFIGURATION,
        Env: [
          'PATH=/usr/local/bin:/usr/sbin',
          'NODE_ENV=production',
          `NODE_VERSION=${nodeVersion}`,
        ],
        Labels: labels,
      },
      rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
      history: ['libraries', 'Node.js', 'Sextant'].map((comment) => ({ created, comment })),
    })
    const manifest = await putJson(`${TYPE}.manifest.v1+json`, {
      schemaVersion: 2,
      mediaType: `${TYPE}.manifest.v1+json`,
      config: about,
      layers: layers.map(({ descriptor }) => descriptor),
    })
    manifests.push({ ...manifest, platform })
  }
  const index = { schemaVersion: 2, mediaType: `${TYPE}.index.v1+json` }
  const all = await putJson(index.mediaType, { ...index, manifests, annotations: labels })
  const annotations = { 'org.opencontainers.image.ref.name': `${name}:${version}` }
  const top = { ...index, manifests: [{ ...all, annotations }] }
  await writeFile(join(layout, 'index.json'), JSON.stringify(top))
  await writeFile(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
  const names = ['oci-layout', 'index.json', 'blobs']
  const archive = join(out, `${name}-${version}-image.tar`)
  await writeTar(archive, layout, epochSeconds, names, true)
  const packages = new Map(
    programs.map(({ arch, libraries }) => [arch, libraries.get(name).packages]),
  )
  return { name, digest: all.digest, packages }
}
