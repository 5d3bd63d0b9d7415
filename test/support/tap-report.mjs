// Reads what tap writes: FOLDER/report (--output-file) and FOLDER/files (--output-dir).
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The process of the unit tests of one folder, which test/run.mjs writes. Messages name the folder. */
const GROUP = /^\.tap\/groups\/(.+)\.test\.mjs$/
/** Comments of test/support/run-file.mjs in the report of a group: before each file, and after the last one. */
const MEMBER = /^# (test\/.+\.test\.ts)$/
const GROUP_END = '# all files ended'

/** A line. If it is a test point, its diagnostic (YAML) belongs to it. */
const PIECE = /^.*(?:\n((?: {4})* {2})---\n[\s\S]*?\n\1\.\.\.$)?/gm
const POINT = /^( *)(not )?ok \d+(?: - (.*?))?(?: # (?:time=|(SKIP|TODO)\b).*)?$/

/** Returns the results of each test process, and whether tap has reported all of them. */
export function readReport(folder) {
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
  return { processes, isComplete }
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

/** Adds up `passed`, `failed` or `skipped` of the results of some processes. */
export function sum(processes, kind) {
  const results = [...processes].flatMap((process) => [...process.results.values()])
  return results.reduce((total, result) => total + result[kind], 0)
}

/** Returns the path of a test process as messages name it. */
export function nameOf(path) {
  return path.replace(GROUP, 'test/$1')
}
