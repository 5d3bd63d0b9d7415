// Decides whether the runs of `.ci/run` passed: node .ci/reruns.mjs {FOLDER STATUS BIN TREE}...
// A run has the folder of its reports, the exit status of tap, the folder of its Node.js, and its source tree.
// tap has written FOLDER/report (--output-file) and FOLDER/files (--output-dir). Failed files run again, alone.
// The last line is `N passed, N failed`; the exit status is 0 only if nothing failed.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { basename, delimiter, join } from 'node:path'

/** If more files fail, none of them runs again. */
const FLAKY_FILES_MAX = 2

/** The process of the unit tests of one folder, which test/run.mjs writes. Messages name the folder. */
const GROUP = /^\.tap\/groups\/(.+)\.test\.mjs$/
/** Comments of test/support/run-file.mjs in the report of a group: before each file, and after the last one. */
const MEMBER = /^# (test\/.+\.test\.ts)$/
const GROUP_END = '# all files ended'

/** A line. If it is a test point, its diagnostic (YAML) belongs to it. */
const PIECE = /^.*(?:\n((?: {4})* {2})---\n[\s\S]*?\n\1\.\.\.$)?/gm
const POINT = /^( *)(not )?ok \d+(?: - (.*?))?(?: # (?:time=|(SKIP|TODO)\b).*)?$/

function readRun(folder, status, bin, tree) {
  const files = join(folder, 'files')
  const names = existsSync(files) ? readdirSync(files, { recursive: true }).sort() : []
  const processes = new Map()
  for (const name of names.filter((name) => /\.test\.\w+\.tap$/.test(name))) {
    const path = name.replace(/\.tap$/, '')
    processes.set(path, parseProcess(path, readFileSync(join(files, name), 'utf8')))
  }
  const report = join(folder, 'report')
  const text = existsSync(report) ? readFileSync(report, 'utf8') : ''
  const { timeouts, strays } = parseEnds(text, processes)
  const lost = [...processes.values()].filter(({ hasEnded }) => !hasEnded)
  // tap reports a timeout beside the result of the process, and leaves out as many results at the end.
  const isComplete = /^# \{ total: /m.test(text) && strays === 0 && lost.length <= timeouts
  return { folder, name: basename(folder), status, bin, tree, processes, isComplete }
}

/** Parses the report of a test process into results by file: its own, and those of each file that a group started. */
function parseProcess(path, text) {
  const process = { path, isCut: GROUP.test(path), hasEnded: false, results: new Map() }
  let result = addResult(process, path)
  let depth = 0
  for (const piece of text.match(PIECE)) {
    const [line] = piece.split('\n', 1)
    const [, member] = MEMBER.exec(line) ?? []
    if (member !== undefined && process.isCut) result = addResult(process, member)
    if (line === GROUP_END) process.isCut = false
    const [, indent, not, , skip] = POINT.exec(line) ?? []
    if (indent === undefined) continue
    // The points of a subtest are followed by one that sums them up.
    const isLeaf = indent.length >= depth
    depth = indent.length
    if (not !== undefined || skip !== undefined) result.messages.push(isLeaf ? piece : line)
    if (skip !== undefined) result.skipped++
    else if (not === undefined) result.passed += isLeaf ? 1 : 0
    else if (isLeaf || result.failed === 0) result.failed++
  }
  // The group ended before all its files had run, and no test says why.
  if (process.isCut && sum([process], 'failed') === 0) process.results.get(path).failed++
  return process
}

function addResult({ results }, file) {
  const result = { passed: 0, failed: 0, skipped: 0, messages: [] }
  results.set(file, result)
  return result
}

/** Parses the report of tap: how each of `processes` ended. */
function parseEnds(text, processes) {
  let timeouts = 0
  let strays = /^Bail out!/m.test(text) ? 1 : 0
  for (const piece of text.match(PIECE)) {
    const [, indent, not, name, skip] = POINT.exec(piece.split('\n', 1)[0]) ?? []
    if (indent !== '') continue
    const [, expired] = /^ {2}expired: (.+)$/m.exec(piece) ?? []
    if (expired !== undefined) timeouts++
    const process = processes.get(expired ?? name)
    if (process === undefined) {
      strays++
      continue
    }
    process.hasEnded = true
    const own = process.results.get(process.path)
    // If no test explains it, the process itself failed or was skipped.
    const kind = skip === undefined ? 'failed' : 'skipped'
    const isBad = not !== undefined || skip !== undefined
    const isExplained = sum([process], kind) > 0
    if (isBad && !isExplained) own[kind]++
    if (isBad && (!isExplained || process.isCut)) own.messages.push(piece)
  }
  return { timeouts, strays }
}

function sum(processes, kind) {
  const results = [...processes].flatMap((process) => [...process.results.values()])
  return results.reduce((total, result) => total + result[kind], 0)
}

/**
 * Lists what to run again. `file` has failed, or tap has lost its result. It passes if each of its `path`s passes: one
 * for each run that it failed in, and also its group if that ended early, because other files did not run then.
 */
function repeatsOf(run) {
  return [...run.processes.values()].flatMap((process) => {
    const { path, isCut, hasEnded, results } = process
    const repeat = (file, path, hasFailed) => ({ file, path, hasFailed, results, run })
    const failed = [...results.keys()].filter((file) => results.get(file).failed > 0)
    const repeats = failed.map((file) => repeat(nameOf(file), file, true))
    if (isCut && !failed.includes(path)) repeats.push(repeat(failed.at(-1), path, true))
    const isLost = run.isComplete && !hasEnded && failed.length === 0
    return isLost ? [repeat(nameOf(path), path, false)] : repeats
  })
}

function nameOf(path) {
  return path.replace(GROUP, 'test/$1')
}

/** Prints what is wrong with `run`. Returns false if that is more than failed files. */
function isSound(run) {
  const { name, processes, status, isComplete } = run
  for (const { results } of processes.values())
    for (const [file, { messages }] of results)
      for (const message of messages) console.error(`${name}: ${nameOf(file)}: ${message}`)
  const skipped = sum(processes.values(), 'skipped')
  const isExplained = status === 0 || sum(processes.values(), 'failed') + skipped > 0
  if (!isComplete) console.error(`${name}: the report is incomplete`)
  if (!isExplained) console.error(`${name}: tap failed with status ${status}, but no file failed`)
  return isComplete && isExplained && skipped === 0
}

/** Runs `path` again. If it passes, its new results replace the old ones. */
function passesAgain({ path, results, run }) {
  console.error(`${run.name}: running ${nameOf(path)} again`)
  const folder = mkdtempSync(`${run.folder}-again-`)
  const outputs = [
    `--output-file=${join(folder, 'report')}`,
    `--output-dir=${join(folder, 'files')}`,
  ]
  // With this reporter the process has our stderr, which has the reason of a crash.
  const { status } = spawnSync(
    'node_modules/.bin/tap',
    ['run', '--reporter=tap', ...outputs, path],
    {
      cwd: run.tree,
      env: { ...process.env, PATH: `${run.bin}${delimiter}${process.env.PATH}` },
      stdio: ['ignore', 'ignore', 'inherit'],
    },
  )
  const again = { ...readRun(folder, status, run.bin, run.tree), name: `${run.name} again` }
  const processes = [...again.processes.values()]
  const hasPassed = sum(processes, 'passed') > 0 && sum(processes, 'failed') === 0
  if (!isSound(again) || status !== 0 || !hasPassed) return false
  for (const [file, result] of processes[0].results) results.set(file, result)
  return true
}

/** Prints the outcome of `runs`; returns whether they passed. */
function decide(runs) {
  let isGreen = runs.map(isSound).every(Boolean)
  const repeats = runs.flatMap(repeatsOf)
  const failed = new Set(repeats.filter(({ hasFailed }) => hasFailed).map(({ file }) => file))
  const isFew = failed.size <= FLAKY_FILES_MAX
  if (!isFew) console.error(`more than ${FLAKY_FILES_MAX} files failed: none runs again`)
  for (const file of new Set(repeats.map((repeat) => repeat.file))) {
    // A file that hangs takes 15 minutes, so its first failure is enough.
    if (!isFew || !repeats.filter((repeat) => repeat.file === file).every(passesAgain)) {
      isGreen = false
      console.error(`${isFew || failed.has(file) ? 'failed' : 'no result'}: ${file}`)
    } else if (failed.has(file)) console.log(`flaky: ${file}`)
  }
  const processes = runs.flatMap((run) => [...run.processes.values()])
  const passes = sum(processes, 'passed')
  const failures = sum(processes, 'failed') + sum(processes, 'skipped')
  isGreen &&= passes > 0 && failures === 0
  console.log(`${passes} passed, ${isGreen ? 0 : Math.max(failures, 1)} failed`)
  return isGreen
}

const args = process.argv.slice(2)
const runs = []
while (args.length > 0) {
  const [folder, status, bin, tree] = args.splice(0, 4)
  runs.push(readRun(folder, Number(status), bin, tree))
}
process.exitCode = decide(runs) ? 0 : 1
