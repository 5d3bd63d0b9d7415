// Runs the tests: node test/run.mjs [--long|--all] [--without=FOLDER]... [TAP-OPTION]... [FILE|FOLDER]...
// Without FILE and FOLDER the long tests are left out; --long runs only them, --all runs every test.
// Prints the progress, what failed, and a table of what was skipped, unless a TAP-OPTION chooses a reporter. Starting a process takes more CPU time than most unit tests, so the unit tests of a top folder share one process.
// `npx tap FILE...` runs each file in a process of its own.
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { javascriptOf } from './support/javascript.mjs'
import { Progress, printResults } from './support/run-output.mjs'

/** Each test file of these folders has its own process: it starts servers, or loads the machine. */
const PROCESS_FOLDERS = [
  'api',
  'cli',
  'cluster',
  'conformance',
  'console',
  'deploy',
  'docs',
  'e2e',
  'stress',
]
/** Folders of long tests, and the line of a long test file elsewhere, with the reason. */
const LONG_FOLDERS = ['cluster', 'stress']
const LONG = /^\/\/ Long: /m
/** In other folders, a test file has its own process if it has a line of this form, with the reason. */
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

const textOf = (file) => readFileSync(join(root, file), 'utf8')

function isLong(file) {
  return LONG_FOLDERS.includes(file.split('/')[1]) || LONG.test(textOf(file))
}

/** The top folder of `file` if it shares the process of that folder, else undefined. */
function groupOf(file) {
  const [, folder, ...rest] = file.split('/')
  if (rest.length === 0 || PROCESS_FOLDERS.includes(folder)) return undefined
  return OWN_PROCESS.test(textOf(file)) ? undefined : folder
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
const OWN_OPTIONS = ['--long', '--all']
const args = process.argv.slice(2)
const without = args
  .filter((arg) => arg.startsWith(WITHOUT))
  .map((arg) => arg.slice(WITHOUT.length))
const options = args.filter((arg) => {
  return arg.startsWith('-') && !arg.startsWith(WITHOUT) && !OWN_OPTIONS.includes(arg)
})
const chosen = args.filter((arg) => !arg.startsWith('-'))
const isChosen = (file) => {
  if (args.includes('--long') && !isLong(file)) return false
  if (chosen.length > 0) return chosen.some((path) => isIn(file, path))
  return args.includes('--long') || args.includes('--all') || !isLong(file)
}
const found = typescriptUnder('test').filter(
  (file) => file.endsWith('.test.ts') && !without.some((path) => isIn(file, path)),
)
const tests = found.filter(isChosen)
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
const isFirst = (file) => OWN_PROCESS.test(textOf(file)) || isLong(file)
alone.sort((a, b) => Number(isFirst(b)) - Number(isFirst(a)))

// All files are compiled here, once. Else each test process loads the compiler for the files that it is the first to need.
for (const file of [...typescriptUnder('src'), ...typescriptUnder('test')]) {
  javascriptOf(join(root, file))
}

const tap = join(root, 'node_modules/.bin/tap')
const files = [...together, ...alone]
const isOurs = !options.some((option) => /^--(reporter|output-)/.test(option))
const folder = isOurs ? mkdtempSync(join(tmpdir(), 'sextant-report-')) : undefined
const outputs = isOurs
  ? ['--reporter=silent', `--output-file=${folder}/report`, `--output-dir=${folder}/files`]
  : []
const child = spawn(tap, ['run', ...outputs, ...options, ...files], { cwd: root, stdio: 'inherit' })
const progress = isOurs ? new Progress(folder, files.length) : undefined
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
child.on('exit', (code) => {
  process.exitCode = code ?? 1
  if (!isOurs) return
  progress.end()
  const left = chosen.length === 0 ? found.filter((file) => !tests.includes(file)).length : 0
  if (!printResults(folder, left)) process.exitCode ||= 1
  rmSync(folder, { recursive: true, force: true })
})
