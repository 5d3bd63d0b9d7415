// The program as images and Debian packages have it: for each architecture Node.js, the build and its packages.
import { copyFile, cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from './run.mjs'

/** Debian's names of architectures, which are those of OCI, to those of Node.js. */
const CPUS = { amd64: 'x64', arm64: 'arm64' }
const NODE_MAJOR = '24'

/** Lays the commit beside the checkout; resolves to its folder. */
export async function makeTree(root, work) {
  const tree = join(work, 'tree')
  await mkdir(tree)
  await run(root, 'sh', '-c', 'git archive HEAD | tar -x -C "$0"', tree)
  await symlink(join(root, 'node_modules'), join(tree, 'node_modules'))
  return tree
}

/** Compiles in the folder `tree`. `npm run check` checks the types. */
export async function build(tree) {
  await run(tree, 'npm', 'run', '--silent', 'build', '--', '--noCheck')
}

/**
 * Makes for each architecture `base`, a folder with the program as `sextant` and nothing else. `node` is the folder
 * that has the program of Node.js for it, of the version `nodeVersion`. `built`: the end of the build.
 */
export function makePrograms(root, tree, work, built) {
  return Promise.all(
    Object.entries(CPUS).map(async ([arch, cpu]) => {
      const base = join(work, `base-${arch}`)
      const app = join(base, 'sextant')
      await Promise.all([installPackages(tree, app, cpu), built])
      for (const name of ['dist', 'LICENSE', 'Corefile.example', 'zones']) {
        await cp(join(tree, name), join(app, name), { recursive: true })
      }
      await removeUnused(app)
      const { devDependencies: _, ...used } = JSON.parse(await readFile(join(tree, 'package.json')))
      await writeFile(join(app, 'package.json'), `${JSON.stringify(used, null, 2)}\n`)
      const node = (await run(root, '.ci/node', NODE_MAJOR, cpu)).trim()
      const [nodeVersion] = /\d+\.\d+\.\d+/.exec(node)
      return { arch, cpu, base, node, nodeVersion }
    }),
  )
}

async function installPackages(tree, app, cpu) {
  await mkdir(app, { recursive: true })
  for (const name of ['package.json', 'package-lock.json', '.npmrc']) {
    await copyFile(join(tree, name), join(app, name))
  }
  const platform = ['--os=linux', `--cpu=${cpu}`, '--libc=glibc']
  await run(app, 'npm', 'ci', '--omit=dev', '--ignore-scripts', '--prefer-offline', ...platform)
}

/** Node.js reads none of these. */
async function removeUnused(app) {
  const kinds = ['*.d.ts', '*.d.mts', '*.d.cts', '*.map', '*.md', '*.tsbuildinfo']
  const names = kinds.flatMap((kind) => ['-o', '-name', kind]).slice(1)
  await run(app, 'find', '.', '-type', 'f', '(', ...names, ')', '!', '-iname', '*licen*', '-delete')
  const files = [
    'package-lock.json',
    '.npmrc',
    'node_modules/.bin',
    'node_modules/.package-lock.json',
  ]
  await run(app, 'rm', '-rf', ...files)
}
