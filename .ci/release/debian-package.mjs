// The Debian package of each architecture, with Node.js inside: Debian 12 has only version 18.
import { chmod, copyFile, cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { ReleaseError, run } from './run.mjs'
import { putTexts } from './texts.mjs'

/** Files of deploy/debian to their places. */
const FILES = {
  'sextant.service': 'usr/lib/systemd/system/sextant.service',
  'sysusers.conf': 'usr/lib/sysusers.d/sextant.conf',
  'tmpfiles.conf': 'usr/lib/tmpfiles.d/sextant.conf',
}
const PROGRAMS = {
  sextant: 'usr/bin/sextant',
  started: 'usr/lib/sextant/started',
  reload: 'usr/lib/sextant/reload',
}
/** Debian 12 and Ubuntu 22.04 read it. More threads would write other octets. */
const COMPRESSION = ['-Zzstd', '-z6', '--threads-max=1']
const SCRIPTS = ['postinst', 'prerm', 'postrm']

/** Writes sextant_VERSION_ARCH.deb for each architecture. */
export async function makeDebianPackages(release) {
  await Promise.all(release.programs.map((program) => makePackage(release, program)))
}

async function makePackage({ tree, work, out, version }, { arch, base, node }) {
  const folder = join(work, `deb-${arch}`)
  const from = join(tree, 'deploy/debian')
  const put = async (source, target, mode = 0o644) => {
    await mkdir(dirname(join(folder, target)), { recursive: true })
    await copyFile(source, join(folder, target))
    await chmod(join(folder, target), mode)
  }
  await cp(join(base, 'sextant'), join(folder, 'usr/lib/sextant'), { recursive: true })
  await put(join(node, 'node'), 'usr/lib/sextant/node', 0o755)
  await put(join(node, 'LICENSE'), 'usr/share/doc/sextant/node.LICENSE')
  for (const [name, target] of Object.entries(FILES)) await put(join(from, name), target)
  for (const [name, target] of Object.entries(PROGRAMS)) await put(join(from, name), target, 0o755)
  await put(join(tree, 'LICENSE'), 'usr/share/doc/sextant/copyright')
  await put(join(tree, 'CHANGELOG.md'), 'usr/share/doc/sextant/CHANGELOG.md')
  await cp(join(tree, 'docs'), join(folder, 'usr/share/doc/sextant/docs'), { recursive: true })
  await putTexts(tree, join(folder, 'usr'))
  const conffiles = await putExample(tree, put, folder)
  await run(folder, 'chmod', '-R', 'u=rwX,go=rX', 'usr', 'etc')

  // The sizes of folders depend on the file system.
  const octets = await run(folder, 'find', '.', '-type', 'f', '-printf', '%s\\n')
  const size = octets
    .trimEnd()
    .split('\n')
    .reduce((sum, one) => sum + Math.ceil(one / 1024), 0)
  const values = { VERSION: version, ARCHITECTURE: arch, KIBIOCTETS: size }
  const control = (await readFile(join(from, 'control'), 'utf8')).replace(
    /\{(\w+)\}/g,
    (_, name) => values[name],
  )
  for (const name of SCRIPTS) await put(join(from, name), `DEBIAN/${name}`, 0o755)
  await writeFile(join(folder, 'DEBIAN/control'), control)
  await writeFile(join(folder, 'DEBIAN/conffiles'), conffiles.map((path) => `/${path}\n`).join(''))
  await chmod(join(folder, 'DEBIAN'), 0o755)
  // The times of files that are newer than SOURCE_DATE_EPOCH become that.
  const file = join(out, `sextant_${version}_${arch}.deb`)
  await run(work, 'dpkg-deb', '--root-owner-group', ...COMPRESSION, '--build', folder, file)
}

/** Lays the example of the README as the configuration; resolves to its files, which upgrades must not replace. */
async function putExample(tree, put, folder) {
  const zones = (await readdir(join(tree, 'zones'))).filter((name) => name.endsWith('.yaml'))
  const paths = zones.sort().map((name) => `etc/sextant/zones/${name}`)
  for (const path of paths) await put(join(tree, path.slice('etc/sextant/'.length)), path)
  const example = await readFile(join(tree, 'Corefile.example'), 'utf8')
  const corefile = example
    .replace(
      /^# Start it with `npm start`.*\n/m,
      '# Edit it for your zones, then: systemctl reload sextant\n',
    )
    .replaceAll('manifests zones', 'manifests /etc/sextant/zones')
    // Without a token, each user of the machine could drain endpoints.
    .replace(/^ {4}# The admin API\b.*\n(?: {4}#.*\n)* {4}admin [^}]*\}\n/m, '')
  const isFitted = ['systemctl', '/etc/sextant/zones'].every((text) => corefile.includes(text))
  if (!isFitted || corefile.includes('admin')) {
    throw new ReleaseError('Corefile.example has changed: change putExample too')
  }
  await writeFile(join(folder, 'etc/sextant/Corefile'), corefile)
  return ['etc/sextant/Corefile', ...paths]
}
