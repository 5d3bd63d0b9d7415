// Bundles the web console into dist. Nothing if it is up to date, or if its folder was deleted.
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'

const CLIENT = 'src/api/console/client'
const ASSETS = 'dist/api/console/assets'
/** What was read, as a list; written last, so that it is newer than all of it. */
const DONE = 'dist/console.tsbuildinfo'
/** Copied as they are. */
const COPIED = ['index.html', 'icon.svg']

/** Resolves to true if the bundle is up to date. Prints what is wrong with the sources otherwise. */
export async function buildConsole() {
  if (!existsSync(CLIENT) || isUpToDate()) return true
  const { build } = await import('esbuild')
  mkdirSync(ASSETS, { recursive: true })
  const { metafile, errors } = await build({
    entryPoints: { console: join(CLIENT, 'main.tsx') },
    outdir: ASSETS,
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  }).catch((error) => ({ errors: error.errors ?? [error] }))
  if (errors.length > 0) return false
  for (const name of COPIED) copyFileSync(join(CLIENT, name), join(ASSETS, name))
  writeFileSync(join(ASSETS, 'licenses.txt'), licensesOf(Object.keys(metafile.inputs)))
  writeFileSync(DONE, JSON.stringify(Object.keys(metafile.inputs)))
  return true
}

/** Texts of the licenses of the packages that have these files: they must be with what is made of the packages. */
function licensesOf(inputs) {
  const packages = new Set(
    inputs.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []),
  )
  const texts = [...packages].sort().map((folder) => {
    const { name, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    const files = readdirSync(folder).filter((file) => /^licen[cs]e/i.test(file))
    return [
      `${name} ${version}`,
      ...files.map((file) => readFileSync(join(folder, file), 'utf8')),
    ].join('\n\n')
  })
  return `${texts.join('\n\n---\n\n')}\n`
}

function isUpToDate() {
  if (!existsSync(DONE) || !existsSync(join(ASSETS, 'console.js'))) return false
  const built = statSync(DONE).mtimeMs
  const files = readdirSync(CLIENT, { recursive: true }).map((name) => join(CLIENT, name))
  const inputs = [
    ...files,
    ...JSON.parse(readFileSync(DONE, 'utf8')),
    'package-lock.json',
    '.ci/console.mjs',
  ]
  return inputs.every((path) => existsSync(path) && statSync(path).mtimeMs <= built)
}
