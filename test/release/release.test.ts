// Long: it makes releases, and installs them.
// Own process: it starts servers.
import { generateKeyPairSync } from 'node:crypto'
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { exampleValues, needsHelm, renderChart } from '../support/helm.ts'
import { scanFences } from '../support/page.ts'
import { needs, needsRoot, run } from '../support/peer.ts'
import { root } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import {
  commitAll,
  copyTree,
  RELEASE_TOOLS,
  readLayout,
  release,
  runIn,
  unpackLayers,
} from './made.ts'

process.env.SEXTANT_RELEASE_KEY = String(
  generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }),
)
const { version: VERSION } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const LABEL = 'org.opencontainers.image'
/** The machine of an ELF file (octet 18) for AArch64. */
const ELF_ARM64 = 'b7'
const IMAGE_OCTETS_MAX = 100_000_000

t.test('a release is refused if', needs('git'), async (t) => {
  const directory = temporaryDirectory(t)
  for (const path of ['.ci/release', 'package.json']) {
    cpSync(join(root, path), join(directory, path), { recursive: true })
  }
  writeFileSync(join(directory, 'CHANGELOG.md'), '# Changelog\n\n## 0.0.1\n\n- Nothing.\n')
  await commitAll(directory)
  mkdirSync(join(directory, '.git/full/some'), { recursive: true })
  const table = [
    { why: 'no folder', args: [VERSION], error: 'usage: npm run release -- VERSION OUTDIR' },
    { why: 'another version', args: ['9.9.9', '.git/out'], error: 'VERSION is 9.9.9, but package' },
    { why: 'a full folder', args: [VERSION, '.git/full'], error: /full has files: name an empty/ },
    { why: 'a file', args: [VERSION, '.git/HEAD'], error: /HEAD cannot be made or read: name a f/ },
    { why: 'no changelog', args: [VERSION, '.git/out'], error: 'CHANGELOG.md has no section' },
  ]
  for (const { why, args, error } of table) {
    await t.rejects(release(t, directory, ...args), { message: error }, why)
  }
  writeFileSync(join(directory, 'new'), '')
  const dirty = { message: /the tree has changes without a commit.*\n\?\? new/ }
  await t.rejects(release(t, directory, VERSION, '.git/out'), dirty, 'a file without a commit')
})

t.test('a release', needs(...RELEASE_TOOLS, 'skopeo', 'dig'), async (t) => {
  const out = temporaryDirectory(t)
  const [tree, same] = [await copyTree(t), await copyTree(t)]
  await release(t, tree, VERSION, out)
  // Beside the other tests.
  const again = temporaryDirectory(t)
  const repeated = release(t, same, VERSION, again)
  repeated.catch(() => {})
  const file = (name: string) => join(out, name)

  t.test('has checksums of all files', async (t) => {
    await runIn(out, 'sha256sum', '--check', '--strict', '--quiet', 'SHA256SUMS')
    const sums = readFileSync(file('SHA256SUMS'), 'utf8').trimEnd().split('\n')
    const listed = sums.map((line) => line.split('  ')[1])
    t.strictSame([...listed, 'SHA256SUMS', 'SHA256SUMS.sig'].sort(), readdirSync(out).sort())
  })

  t.test('states its commit, its images, and what they were made from', async (t) => {
    const envelope = JSON.parse(readFileSync(file(`sextant-${VERSION}.intoto.jsonl`), 'utf8'))
    const { subject, predicate } = JSON.parse(String(Buffer.from(envelope.payload, 'base64')))
    const names = subject.map(({ name }: { name: string }) => name)
    for (const name of [`sextant_${VERSION}_arm64.deb`, `sextant-node:${VERSION}`]) {
      t.ok(names.includes(name), name)
    }
    const from = JSON.stringify(predicate.buildDefinition.resolvedDependencies)
    t.match(from, (await runIn(tree, 'git', 'rev-parse', 'HEAD')).trim())
    for (const purl of ['pkg:generic/node@24', 'pkg:deb/debian/libc6@']) t.match(from, purl)
  })

  t.test('lists licences', async (t) => {
    const licences = readFileSync(file(`sextant-${VERSION}-licences.txt`), 'utf8')
    for (const line of [/^yaml \S+: ISC$/m, /-mmdb \S+: CC0-1.0$/m, /^nftables /m]) {
      t.match(licences, line)
    }
  })

  t.test('has the changes of the version', async (t) => {
    const notes = readFileSync(file(`sextant-${VERSION}-notes.md`), 'utf8')
    t.match(notes, /^### /m)
    t.notMatch(notes, /^##? /m)
  })

  const npm = { ...needs('ip', 'unshare'), ...needsRoot() }
  t.test('the npm package serves the example', npm, async (t) => {
    const directory = temporaryDirectory(t)
    symlinkSync(file(`sextant-${VERSION}.tgz`), join(directory, `sextant-${VERSION}.tgz`))
    const [install, ...rest] = commandsOf('npm')
    await runIn(directory, 'env', 'npm_config_prefer_offline=true', 'sh', '-c', install!)
    const chart = join(directory, 'node_modules/sextant/deploy/chart')
    t.notOk(existsSync(chart), 'npm leaves out the links of the chart')
    const got = await runAlone(directory, rest)
    t.ok(got.split('\n').includes(ADDRESS), got)
  })

  const podman = { ...needs('podman', 'crun', 'ip', 'unshare'), ...needsRoot() }
  t.test('the image serves the example', podman, async (t) => {
    const [layout, rootfs] = [temporaryDirectory(t), temporaryDirectory(t)]
    const images = await readLayout(file(`sextant-${VERSION}-image.tar`), layout)
    for (const [architecture, { octets }] of images) {
      t.ok(octets <= IMAGE_OCTETS_MAX, `${architecture}: ${octets} octets`)
    }
    await unpackLayers(images.get('amd64')!, rootfs)
    t.strictSame(await programsOf(rootfs), ['usr/local/bin/node'], 'no shell, no npm')
    t.match(images.get('amd64')!.config.User, /^[1-9]\d*:[1-9]\d*$/, 'no root')
    const end = 'podman stop --latest --time 60 >/dev/null && podman wait --latest'
    const got = await runAlone(out, commandsOf('image'), podmanSettings(t), end)
    t.equal(got.trimEnd().split('\n').slice(-2).join(), `${ADDRESS},0`, got)
    const skopeo = JSON.parse(await runIn(layout, 'skopeo', 'inspect', `oci:${layout}`))
    t.match(skopeo, { Architecture: 'amd64', Labels: { [`${LABEL}.version`]: VERSION } })
  })

  t.test('the image of the node agent has its tools', needsRoot(), async (t) => {
    const [layout, rootfs] = [temporaryDirectory(t), temporaryDirectory(t)]
    const images = await readLayout(file(`sextant-node-${VERSION}-image.tar`), layout)
    for (const [architecture, { octets }] of images) {
      t.ok(octets <= IMAGE_OCTETS_MAX, `${architecture}: ${octets} octets`)
    }
    const { config } = images.get('amd64')!
    await unpackLayers(images.get('amd64')!, rootfs)
    const programs = ['usr/local/bin/node', 'usr/sbin/conntrack', 'usr/sbin/nft']
    t.strictSame(await programsOf(rootfs), programs)
    for (const args of [
      ['conntrack', '--version'],
      ['nft', '--version'],
      [...config.Entrypoint, 'node', '--help'],
    ]) {
      const { code, stdout, stderr } = await run('env', [config.Env[0]!, 'chroot', rootfs, ...args])
      t.equal(code, 0, `${args.join(' ')}: ${stdout}${stderr}`)
    }
    const [libraries, node, app] = images.get('arm64')!.layers
    const start = await runIn(
      layout,
      'sh',
      '-c',
      `tar -xzOf ${node} ./usr/local/bin/node | head -c 20 | od -An -tx1`,
    )
    t.equal(start.trim().split(/\s+/).at(-2), ELF_ARM64)
    t.match(await runIn(layout, 'tar', '-tzf', libraries!), /aarch64-linux-gnu\/libc\.so\.6/)
    const koffi = /@koromix\/koffi-[\w-]+/g
    const found = (await runIn(layout, 'tar', '-tzf', app!)).match(koffi)
    t.strictSame([...new Set(found)], ['@koromix/koffi-linux-arm64'])
  })

  t.test('has the plug-in of kubectl', async (t) => {
    const manifest = readFileSync(file(`sextant-${VERSION}-krew.yaml`), 'utf8')
    const [platform] = parse(manifest).spec.platforms
    const archive = file(`sextant-${VERSION}-kubectl.tar.gz`)
    t.match(await runIn(out, 'sha256sum', archive), platform.sha256)
    const folder = temporaryDirectory(t)
    await runIn(folder, 'tar', '-xzf', archive)
    await runIn(folder, 'ln', '-s', platform.bin, 'kubectl-sextant')
    t.match(await runIn(folder, './kubectl-sextant', '--help'), /sextant kubectl status/)
  })

  t.test('has man pages and completions, in the Debian package too', async (t) => {
    const share = await runIn(out, 'tar', '-tzf', file(`sextant-${VERSION}-share.tar.gz`))
    const deb = await runIn(out, 'dpkg-deb', '--contents', file(`sextant_${VERSION}_amd64.deb`))
    for (const path of [
      'share/man/man1/sextant-serve.1',
      'share/bash-completion/completions/sextant',
      'share/zsh/vendor-completions/_sextant',
      'share/fish/vendor_completions.d/sextant.fish',
    ]) {
      t.match(share, `${path}\n`)
      t.match(deb, `./usr/${path}\n`)
    }
  })

  t.test('the manifests name the images by digest', async (t) => {
    const directory = temporaryDirectory(t)
    await runIn(directory, 'tar', '-xzf', file(`sextant-${VERSION}-manifests.tar.gz`))
    const manifests = join(directory, `sextant-${VERSION}`)
    await runIn(directory, 'tar', '-xzf', file(`sextant-${VERSION}-chart.tgz`))
    const links = await runIn(directory, 'find', '.', '-type', 'l')
    t.equal(links, '', 'files of other folders are copied, not linked')
    for (const name of ['sextant', 'sextant-node']) {
      const archive = file(`${name}-${VERSION}-image.tar`)
      const index = JSON.parse(await runIn(out, 'tar', '-xOf', archive, 'index.json'))
      const { stdout } = await run('grep', ['-rh', `image: ${name}[:@]`, manifests])
      const lines = stdout
        .trim()
        .split('\n')
        .map((line) => line.trim())
      for (const line of lines) t.equal(line, `image: ${name}@${index.manifests[0].digest}`)
    }
    const site = readFileSync(join(manifests, 'deploy/examples/site/kustomization.yaml'), 'utf8')
    t.match(site, /^ {2}digest: sha256:[0-9a-f]{64}$/m)
    t.notMatch(site, 'newTag')
  })

  t.test('the chart names the image by digest', needsHelm(), async (t) => {
    const chart = file(`sextant-${VERSION}-chart.tgz`)
    const values = ['-f', exampleValues('site'), '--set', 'image.repository=sextant']
    const manifests = await renderChart('sextant-system', values, chart)
    const archive = file(`sextant-${VERSION}-image.tar`)
    const index = JSON.parse(await runIn(out, 'tar', '-xOf', archive, 'index.json'))
    const texts = manifests.map((manifest) => JSON.stringify(manifest))
    const images = texts.flatMap((text) => text.match(/"image":"[^"]+"/g) ?? [])
    t.ok(images.length > 0)
    for (const image of images) t.equal(image, `"image":"sextant@${index.manifests[0].digest}"`)
    t.notMatch(await runIn(out, 'tar', '-tvzf', chart), /^l/m, 'no links')
  })

  t.test('the bills of materials list what is inside', async (t) => {
    const purls = (name: string): string[] => {
      const { components, bomFormat } = JSON.parse(readFileSync(file(`${name}.cdx.json`), 'utf8'))
      t.equal(bomFormat, 'CycloneDX')
      return components.map(({ purl }: { purl: string }) => purl)
    }
    t.match(purls(`sextant-${VERSION}`).join(' '), /pkg:npm\/yaml@/)
    const ofImage = purls(`sextant-node-${VERSION}-arm64`).join(' ')
    for (const purl of ['npm/yaml', 'generic/node', 'deb/debian/nftables', 'deb/debian/libc6']) {
      t.match(ofImage, `pkg:${purl}@`)
    }
    t.notMatch(ofImage, /koffi-linux-x64/)
  })

  const systemd = { ...needs('systemctl'), ...needsRoot() }
  t.test('the Debian package serves the example', systemd, async (t) => {
    const folder = temporaryDirectory(t)
    const deb = `sextant_${VERSION}_amd64.deb`
    copyFileSync(file(deb), join(folder, deb))
    writeFileSync(join(folder, 'commands'), commandsOf('debian').join('\n'))
    for (const name of ['load-client.mjs', 'reply-addresses.mjs']) {
      copyFileSync(join(root, 'test/support', name), join(folder, name))
    }
    const [boot, script] = ['systemd.sh', 'debian.sh'].map((name) => {
      return readFileSync(join(root, 'test/release', name), 'utf8')
    })
    const spaces = ['--mount', '--pid', '--fork', '--kill-child']
    const args = [...spaces, 'sh', '-euc', boot!, 'systemd.sh', folder, script!]
    const { code, stdout, stderr } = await run('unshare', args, 600_000)
    t.equal(code, 0, stdout + stderr)
    for (const line of [
      ADDRESS,
      'lost at the upgrade: "failed":0',
      `upgraded: ${ADDRESS}`,
      `crashed: ${ADDRESS}`,
      `kept: ${ADDRESS}`,
      'purged',
    ]) {
      t.ok(stdout.split('\n').includes(line), line)
    }
  })

  t.test('is the same when it is made again', async (t) => {
    await repeated
    const sums = readFileSync(join(again, 'SHA256SUMS'), 'utf8')
    t.equal(sums, readFileSync(file('SHA256SUMS'), 'utf8'))
  })
})

/** The address of the example for the client of README.md. */
const ADDRESS = '198.51.100.1'

/** The commands with which README.md installs a release, serves the example and queries it. */
function commandsOf(way: string): string[] {
  const page = readFileSync(join(root, 'README.md'), 'utf8')
  return scanFences(page)
    .find(({ file }) => file === way)!
    .text.trimEnd()
    .split('\n')
}

/**
 * Runs the commands in namespaces of their own, where the ports of the example are free; all processes end with them.
 * The last command, the query, runs until it gets an answer. Resolves to what was printed.
 */
function runAlone(
  directory: string,
  commands: readonly string[],
  settings = '',
  end = 'true',
): Promise<string> {
  const first = commands.slice(0, -1).join('\n')
  const script = `ip link set lo up\nmount -t cgroup2 none /sys/fs/cgroup\n${settings}\n${first}
for i in $(seq 300); do answer=$(${commands.at(-1)}) && break; sleep 0.2; done
echo "$answer"\n${end}`
  const spaces = ['--mount', '--pid', '--mount-proc', '--net', '--fork', '--kill-child']
  return runIn(directory, 'unshare', ...spaces, 'sh', '-euc', script)
}

/** Has podman keep its files in a folder of its own, and not raise limits, which needs a right of the machine's root. */
function podmanSettings(t: Test): string {
  const folder = temporaryDirectory(t)
  writeFileSync(
    join(folder, 'storage.conf'),
    `[storage]\ndriver = "vfs"\ngraphroot = "${folder}/graph"\nrunroot = "${folder}/run"\n`,
  )
  writeFileSync(
    join(folder, 'containers.conf'),
    '[containers]\ncgroups = "disabled"\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n',
  )
  return `export CONTAINERS_CONF=${folder}/containers.conf CONTAINERS_STORAGE_CONF=${folder}/storage.conf`
}

/** Paths of the programs in the root file system of an image. */
async function programsOf(rootfs: string): Promise<string[]> {
  const { stdout } = await run('find', [
    ...[join(rootfs, 'usr'), '-type', 'f', '-perm', '/111'],
    ...['!', '-name', '*.so*', '-printf', 'usr/%P\\n'],
  ])
  return stdout.trimEnd().split('\n').sort()
}
