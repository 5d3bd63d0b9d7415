// What `npm test` prints: its progress, what failed, and what was skipped.
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { nameOf, readReport, sum } from './tap-report.mjs'

/** How often the progress is printed. A terminal has one line of it. */
const [TERMINAL_MS, LINE_MS] = [500, 20_000]
/** A reason of `needs` in peer.ts: `not installed: dig (Debian: bind9-dnsutils), kdig (Debian: knot-dnsutils)`. */
const MISSING = /^not installed: (.+)$/
const TOOL = / \(Debian: (\S+)\)$/
const SKIPPED = /^ *ok \d+.*? # SKIP (.+)$/

/** Prints how many of the test processes have started. */
export class Progress {
  #folder
  #count
  #startMs = Date.now()
  #timer

  /** `folder`: where tap writes; `count`: of the test processes. */
  constructor(folder, count) {
    this.#folder = folder
    this.#count = count
    const isTerminal = process.stderr.isTTY === true
    this.#timer = setInterval(() => this.#print(isTerminal), isTerminal ? TERMINAL_MS : LINE_MS)
  }

  end() {
    clearInterval(this.#timer)
    if (process.stderr.isTTY === true) process.stderr.write('\r\x1b[K')
  }

  #print(isTerminal) {
    const files = join(this.#folder, 'files')
    const paths = existsSync(files) ? readdirSync(files, { recursive: true }) : []
    const started = paths.filter((path) => /\.test\.\w+\.tap$/.test(path))
    const latest = started
      .map((path) => [path, statSync(join(files, path)).mtimeMs])
      .sort(([, a], [, b]) => b - a)[0]?.[0]
    const seconds = Math.round((Date.now() - this.#startMs) / 1000)
    const name = latest === undefined ? '' : `, ${nameOf(latest.replace(/\.tap$/, ''))}`
    const line = `${seconds} s: ${started.length} of ${this.#count} test processes${name}`
    process.stderr.write(isTerminal ? `\r\x1b[K${line}` : `${line}\n`)
  }
}

/** Prints the results that tap wrote. `left`: number of test files that did not run. Returns false if one failed. */
export function printResults(folder, left) {
  const { processes, isComplete } = readReport(folder)
  const all = [...processes.values()]
  const skips = []
  for (const { results } of all) {
    for (const [file, { messages }] of results) {
      for (const message of messages) {
        const reason = SKIPPED.exec(message)?.[1]
        if (reason === undefined) console.log(`${nameOf(file)}: ${message}`)
        else skips.push(reason)
      }
    }
  }
  printSkips(skips)
  if (left > 0) console.log(`${left} long test files did not run: npm run test:all`)
  if (!isComplete) console.log('the report of tap is incomplete')
  const [passed, failed] = [sum(all, 'passed'), sum(all, 'failed')]
  console.log(`${passed} passed, ${failed} failed, ${skips.length} skipped`)
  return isComplete && failed === 0
}

/** `reasons`: one for each skipped test. Prints how many need each missing tool. */
function printSkips(reasons) {
  if (reasons.length === 0) return
  const counts = new Map()
  const packages = new Set()
  for (const reason of reasons) {
    const lacks = MISSING.exec(reason)?.[1].split(', ') ?? [reason]
    for (const one of lacks) {
      counts.set(one, (counts.get(one) ?? 0) + 1)
      const name = TOOL.exec(one)?.[1]
      if (name !== undefined) packages.add(name)
    }
  }
  console.log('Skipped tests, by what is missing:')
  for (const [one, count] of [...counts].sort(([, a], [, b]) => b - a))
    console.log(`${String(count).padStart(6)}  ${one}`)
  if (packages.size > 0) console.log(`  apt-get install ${[...packages].sort().join(' ')}`)
}
