// Runs the tests: node test/run.mjs [--without=FOLDER]... [TAP-OPTION]... [FILE|FOLDER]...
// Starting a process takes more CPU time than most unit tests, so the unit tests of a top folder share one process.
// `npx tap FILE...` runs each file in a process of its own.
import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { javascriptOf } from './support/javascript.mjs'

/** Each test file of these folders has its own process: it starts servers, or loads the machine. */
const PROCESS_FOLDERS = ['api', 'cli', 'cluster', 'conformance', 'deploy', 'docs', 'e2e', 'stress']
/** Elsewhere, a test file has its own process if it has a line of this form, with the reason. */
const OWN_PROCESS = /^\/\/ Own process: /m

const root = resolve(fileURLToPath(import.meta.url), '../..')
const groups = join(root, '.tap/groups')

/** Paths under `root` of all TypeScript files under `folder`, sorted. */
function typescriptUnder(folder) {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort()
}

function isIn(file, path) {
  return file === path || file.startsWith(`${path.replace(/\/$/, '')}/`)
}

/** The top folder of `file` if it shares the process of that folder, else undefined. */
function groupOf(file) {
  const [, folder, ...rest] = file.split('/')
  if (rest.length === 0 || PROCESS_FOLDERS.includes(folder)) return undefined
  return OWN_PROCESS.test(readFileSync(join(root, file), 'utf8')) ? undefined : folder
}

/** Writes a test file that runs `files` one after the other; returns its path under `root`. */
function writeGroup(name, files) {
  const runner = JSON.stringify(join(root, 'test/support/run-file.mjs'))
  const runs = files.map((file) => `await run(${JSON.stringify(join(root, file))})\n`)
  const path = join(groups, `${name}.test.mjs`)
  writeFileSync(path, `import { end, run } from ${runner}\n${runs.join('')}await end()\n`)
  return relative(root, path)
}

const WITHOUT = '--without='
const args = process.argv.slice(2)
const without = args
  .filter((arg) => arg.startsWith(WITHOUT))
  .map((arg) => arg.slice(WITHOUT.length))
const options = args.filter((arg) => arg.startsWith('-') && !arg.startsWith(WITHOUT))
const chosen = args.filter((arg) => !arg.startsWith('-'))
const tests = typescriptUnder('test')
  .filter((file) => file.endsWith('.test.ts') && !without.some((path) => isIn(file, path)))
  .filter((file) => chosen.length === 0 || chosen.some((path) => isIn(file, path)))
if (tests.length === 0) {
  // Without a file tap would run them all.
  console.error(`no test file: ${chosen.join(' ')}`)
  process.exit(1)
}

rmSync(groups, { recursive: true, force: true })
mkdirSync(groups, { recursive: true })
const filesOf = new Map()
for (const file of tests) {
  const name = groupOf(file)
  filesOf.set(name, [...(filesOf.get(name) ?? []), file])
}
const alone = filesOf.get(undefined) ?? []
filesOf.delete(undefined)
const together = [...filesOf].map(([name, files]) => writeGroup(name, files))
// Some of them take longest: at the end other processors would wait for them.
const isLong = (file) => OWN_PROCESS.test(readFileSync(join(root, file), 'utf8'))
alone.sort((a, b) => Number(isLong(b)) - Number(isLong(a)))

// All files are compiled here, once. Else each test process loads the compiler for the files that it is the first to need.
for (const file of [...typescriptUnder('src'), ...typescriptUnder('test')]) {
  javascriptOf(join(root, file))
}

const tap = join(root, 'node_modules/.bin/tap')
const child = spawn(tap, ['run', ...options, ...together, ...alone], {
  cwd: root,
  stdio: 'inherit',
})
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
child.on('exit', (code) => {
  process.exitCode = code ?? 1
})
