import { spawn } from 'node:child_process'
import { readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { run } from '../support/peer.ts'
import { root } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

/* Releases of copies of this tree. */

/** What `npm run release` needs, beside the programs of a basic system. */
export const RELEASE_TOOLS = ['git', 'dpkg-deb', 'apt-get']

/** Runs a command in `directory`; throws if it fails. */
export async function runIn(directory: string, tool: string, ...args: string[]): Promise<string> {
  const words = ['-c', 'cd "$0" && exec "$@"', directory, tool, ...args]
  const { code, stdout, stderr } = await run('sh', words, 600_000)
  if (code !== 0) throw new Error(`${tool} ${args.join(' ')}:\n${stdout}${stderr}`)
  return stdout
}

/** Commits all files of `directory`, always with the same time. */
export async function commitAll(directory: string): Promise<void> {
  const own = ['-c', 'user.name=test', '-c', 'user.email=test@localhost']
  await runIn(directory, 'git', 'init', '--quiet')
  await runIn(directory, 'git', 'add', '--all')
  const time = ['GIT_AUTHOR_DATE=2026-01-01T00:00:00Z', 'GIT_COMMITTER_DATE=2026-01-01T00:00:00Z']
  await runIn(directory, 'env', ...time, 'git', ...own, 'commit', '--quiet', '-m', 'release')
}

/** Makes a repository with one commit: this tree, also what has no commit yet. */
export async function copyTree(t: Test): Promise<string> {
  const directory = temporaryDirectory(t)
  const left = ['.git', '.tap', 'node_modules', 'dist'].map((name) => `--exclude=./${name}`)
  const copy = 'tar -c "$@" . | tar -x -C "$0"'
  await runIn(root, 'sh', '-c', copy, directory, ...left)
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
  await commitAll(directory)
  return directory
}

/** Runs `npm run release` in `directory`; ends with the test. */
export function release(t: Test, directory: string, ...args: string[]): Promise<string> {
  const words = ['run', '--silent', 'release', '--', ...args]
  const child = spawn('npm', words, { cwd: directory, detached: true })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (output += part))
  t.teardown(() => {
    if (child.exitCode === null) process.kill(-child.pid!, 'SIGKILL')
  })
  return new Promise((resolve, reject) => {
    child.on('close', (code) => {
      if (code === 0) resolve(output)
      else reject(new Error(output))
    })
  })
}

interface Descriptor {
  readonly digest: string
  readonly size: number
  readonly platform?: { readonly architecture: string }
}

/** The image for one architecture. */
interface Image {
  /** Paths of the layers. */
  readonly layers: readonly string[]
  /** Size of the compressed layers. */
  readonly octets: number
  readonly config: {
    readonly Entrypoint: readonly string[]
    readonly Env: readonly string[]
    readonly User?: string
    readonly WorkingDir: string
  }
}

/** Unpacks the archive of an image layout, and checks the digests of its blobs. Resolves to images by architecture. */
export async function readLayout(archive: string, directory: string): Promise<Map<string, Image>> {
  await runIn(directory, 'tar', '-xf', archive)
  const check = 'cd blobs/sha256 && for f in *; do echo "$f  $f"; done | sha256sum --check --quiet'
  await runIn(directory, 'sh', '-c', check)
  const pathOf = (digest: string) => join(directory, 'blobs', digest.replace(':', '/'))
  const read = (path: string) => JSON.parse(readFileSync(path, 'utf8'))
  const all = read(pathOf(read(join(directory, 'index.json')).manifests[0].digest))
  const images = all.manifests.map(({ digest, platform }: Descriptor): [string, Image] => {
    const manifest = read(pathOf(digest))
    const layers: Descriptor[] = manifest.layers
    const { config } = read(pathOf(manifest.config.digest))
    const octets = layers.reduce((sum, { size }) => sum + size, 0)
    return [platform!.architecture, { config, octets, layers: layers.map((l) => pathOf(l.digest)) }]
  })
  return new Map(images)
}

export async function unpackLayers({ layers }: Image, directory: string): Promise<void> {
  for (const layer of layers) await runIn(directory, 'tar', '-xzf', layer)
}
