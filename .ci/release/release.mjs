// npm run release -- VERSION OUTDIR: writes what users install to OUTDIR. docs/how-to/release.md says what that is.
// Two runs of one commit write the same octets, unless Debian's archive has changed in between.
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeDebianPackages } from './debian-package.mjs'
import { makeImages } from './image.mjs'
import { makeKrew } from './krew.mjs'
import { makeLicences } from './licences.mjs'
import { makeManifests } from './manifests.mjs'
import { build, makePrograms, makeTree } from './program.mjs'
import { ReleaseError, run } from './run.mjs'
import { makeSboms } from './sbom.mjs'
import { finish, takeKey } from './signature.mjs'
import { makeTexts } from './texts.mjs'

const root = resolve(fileURLToPath(import.meta.url), '../../..')

/** Each writes files to `release.out`. `release.images` is what `makeImages` resolves to. */
const MAKERS = [
  makeTarball,
  makeDebianPackages,
  makeSboms,
  makeManifests,
  makeTexts,
  makeKrew,
  makeLicences,
  makeNotes,
]

async function makeTarball({ tree, out }) {
  await run(tree, 'npm', 'pack', '--ignore-scripts', '--silent', '--pack-destination', out)
}

async function makeNotes({ out, version, notes }) {
  await writeFile(join(out, `sextant-${version}-notes.md`), notes)
}

/** The text below the heading of `version`. */
function notesOf(changelog, version) {
  const sections = changelog.split(/^## /m)
  const section = sections.find((text) => text.split(/\s/, 1)[0] === version)
  if (section === undefined) {
    throw new ReleaseError(
      `CHANGELOG.md has no section ${version}: add the heading "## ${version}"`,
    )
  }
  return `${section.slice(section.indexOf('\n')).trim()}\n`
}

async function check(version, out) {
  const own = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')).version
  if (version !== own) {
    throw new ReleaseError(
      `VERSION is ${version}, but package.json has ${own}: change one of them to the other`,
    )
  }
  const changed = (await run(root, 'git', 'status', '--porcelain')).trimEnd()
  if (changed !== '') {
    throw new ReleaseError(`the tree has changes without a commit: commit or remove\n${changed}`)
  }
  const found = await mkdir(out, { recursive: true }).then(
    () => readdir(out),
    () => undefined,
  )
  if (found === undefined) throw new ReleaseError(`${out} cannot be made or read: name a folder`)
  if (found.length > 0) {
    throw new ReleaseError(`${out} has files: name an empty folder`)
  }
  return notesOf(await readFile(join(root, 'CHANGELOG.md'), 'utf8'), version)
}

async function release(version, out) {
  const key = takeKey()
  const notes = await check(version, out)
  const commit = (await run(root, 'git', 'rev-parse', 'HEAD')).trimEnd()
  const epochSeconds = Number(await run(root, 'git', 'log', '-1', '--format=%ct'))
  // For programs that know it.
  process.env.SOURCE_DATE_EPOCH = String(epochSeconds)
  process.umask(0o022)
  const work = await mkdtemp(join(tmpdir(), 'sextant-release-'))
  try {
    const tree = await makeTree(root, work)
    const programs = await makePrograms(root, tree, work, build(tree))
    const own = { version, commit, out, work, tree, epochSeconds, notes, programs }
    const images = makeImages(own)
    const made = { ...own, images }
    await Promise.all([images, ...MAKERS.map((make) => make(made))])
    await finish(made, key)
    const files = (await readdir(out)).sort()
    console.log(files.map((name) => join(out, name)).join('\n'))
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

const [version, out, ...more] = process.argv.slice(2)
try {
  if (out === undefined || more.length > 0) {
    throw new ReleaseError('usage: npm run release -- VERSION OUTDIR')
  }
  await release(version, resolve(process.env.INIT_CWD ?? '.', out))
} catch (error) {
  if (!(error instanceof ReleaseError)) throw error
  console.error(`release: ${error.message}`)
  process.exitCode = 1
}
