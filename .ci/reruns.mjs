// Decides whether the runs of `.ci/run` passed: node .ci/reruns.mjs {FOLDER STATUS BIN TREE}...
// A run has the folder of its reports, the exit status of tap, the folder of its Node.js, and its source tree.
// tap has written FOLDER/report (--output-file) and FOLDER/files (--output-dir). Failed files run again, alone.
// The run `bare` has only the programs in BIN, so tests of others are skipped there. Elsewhere a skipped test counts as failed.
// The last line is `N passed, N failed`; the exit status is 0 only if nothing failed.
import { spawnSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { basename, delimiter, join } from 'node:path'
import { nameOf, readReport, sum } from '../test/support/tap-report.mjs'

const BARE = 'bare'
/** If more files fail, none of them runs again. */
const FLAKY_FILES_MAX = 2

function readRun(folder, status, bin, tree) {
  const name = basename(folder)
  const isBare = name.startsWith(BARE)
  const report = readReport(folder)
  if (isBare) for (const { results } of report.processes.values()) results.forEach(forgetSkips)
  return { folder, name, isBare, status, bin, tree, ...report }
}

function forgetSkips(result) {
  result.skipped = 0
  result.messages = result.messages.filter((message) => !/ # SKIP\b/.test(message))
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
  const env = run.isBare
    ? { PATH: run.bin, HOME: folder }
    : { ...process.env, PATH: `${run.bin}${delimiter}${process.env.PATH}` }
  // With this reporter the process has our stderr, which has the reason of a crash.
  const { status } = spawnSync(
    'node_modules/.bin/tap',
    ['run', '--reporter=tap', ...outputs, path],
    {
      cwd: run.tree,
      env,
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
  // A run without any passed test has tested nothing.
  const isEmpty = ({ processes }) => sum(processes.values(), 'passed') === 0
  isGreen &&= passes > 0 && failures === 0 && !runs.some(isEmpty)
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
