// The libraries and tools of Debian that images have. They come from the archive that this machine uses, by apt-get.
import { existsSync } from 'node:fs'
import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { run } from './run.mjs'

/** What Node.js and koffi are linked to. Node.js has certificates and time zones of its own. */
export const LIBRARIES = ['libc6', 'libstdc++6', 'libgcc-s1']
/** The programs that the node agent runs. */
export const TOOLS = ['nftables', 'conntrack']
/** All that those have outside of the folders of libraries: they need neither a shell nor a configuration. */
const PROGRAMS = ['usr/sbin/nft', 'usr/sbin/conntrack']

/**
 * Fetches packages and what they depend on; resolves to the files of all that were fetched for `arch`. The first call
 * for `arch` also fetches the lists.
 */
export async function fetchPackages(work, arch, names) {
  const apt = join(work, `apt-${arch}`)
  const isFirst = !existsSync(apt)
  const archives = join(apt, 'archives')
  await mkdir(join(apt, 'lists/partial'), { recursive: true })
  await mkdir(join(archives, 'partial'), { recursive: true })
  await writeFile(join(apt, 'status'), '')
  // Nothing is installed there, and the architecture need not be the machine's.
  const settings = [
    `APT::Architecture=${arch}`,
    `APT::Architectures::=${arch}`,
    `Dir::State::lists=${join(apt, 'lists')}`,
    `Dir::State::status=${join(apt, 'status')}`,
    `Dir::Cache=${apt}`,
    `Dir::Cache::archives=${archives}`,
    'Acquire::Languages=none',
    'APT::Sandbox::User=',
  ].flatMap((setting) => ['-o', setting])
  if (isFirst) await run(work, 'apt-get', '-qq', ...settings, 'update')
  const install = ['install', '-y', '--no-install-recommends', '--download-only']
  await run(work, 'apt-get', '-qq', ...settings, ...install, ...names)
  const files = (await readdir(archives)).filter((name) => name.endsWith('.deb')).sort()
  return files.map((name) => join(archives, name))
}

/** Resolves to the name, the version and the architecture of a package. */
export async function describePackage(path) {
  const fields = await run('/', 'dpkg-deb', '-f', path, 'Package', 'Version', 'Architecture')
  const [name, version, arch] = fields.split('\n').map((line) => line.replace(/^\w+: /, ''))
  return { name, version, arch }
}

/** Unpacks what a running program needs of packages into `folder`, and what scanners of images read. */
export async function unpackLibraries(paths, folder) {
  const status = join(folder, 'var/lib/dpkg/status.d')
  await mkdir(status, { recursive: true })
  for (const part of ['bin', 'sbin', 'lib', 'lib64']) {
    await mkdir(join(folder, 'usr', part), { recursive: true })
    await symlink(`usr/${part}`, join(folder, part))
  }
  for (const path of paths) {
    const unpack = 'dpkg-deb --fsys-tarfile "$1" | tar -x --keep-directory-symlink -C "$0"'
    await run('/', 'sh', '-c', unpack, folder, path)
    await writeFile(
      join(status, basename(path).split('_')[0]),
      await run('/', 'dpkg-deb', '-f', path),
    )
  }
  const kept = [
    ...['-path', './usr/lib*/*.so*', '!', '-path', '*/gconv/*'],
    ...['-o', '-name', 'copyright', '-o', '-path', './var/lib/dpkg/*'],
    ...PROGRAMS.flatMap((path) => ['-o', '-path', `./${path}`]),
  ]
  await run(
    folder,
    'find',
    '.',
    '-mindepth',
    '2',
    '!',
    '-type',
    'd',
    '!',
    '(',
    ...kept,
    ')',
    '-delete',
  )
  await run(folder, 'find', '.', '-type', 'd', '-empty', '-delete')
}
