import { printDuration, scanDuration } from '../../base/duration.ts'
import { didYouMean } from '../../base/nearest.ts'
import { LineBudget } from '../../base/telemetry/line-budget.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { nextOnce } from '../../plugin/arguments/once.ts'
import { scanPattern } from '../../plugin/arguments/pattern.ts'
import type { Description, DirectivePart } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import type { Handler } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { Consolidation } from './consolidation.ts'
import { ErrorLog } from './error-log.ts'
import { Errors } from './errors.ts'

/** Most errors that a thread reports per period. */
const LINES_MAX = 100
const LINES_PERIOD_MS = 10_000
const LEVELS = ['warning', 'error', 'info', 'debug'] as const
const FIELDS = ['consolidate', 'stacktrace']
type Level = (typeof LEVELS)[number]

/** `errors { stacktrace | consolidate DUR REGEXP [LEVEL] [show_first] }`: logs errors. */
export const errors: Directive = { name: 'errors', setup }

function setup(c: SetupContext): Description {
  const d = c.dispenser
  const consolidations: Consolidation[] = []
  for (let i = 0; nextOnce(d, i); i++) {
    const args = d.remainingArgs(0, 1)
    if (args.length === 1 && args[0] !== 'stdout') throw d.error(`invalid log file: ${args[0]}`)
    d.eachProperty(() => {
      if (d.value() === 'consolidate') consolidations.push(scanConsolidation(c, d))
      // Stacks of exceptions are always logged, so the option has no effect.
      else if (d.value() !== 'stacktrace')
        throw d.error(`Unknown field ${d.value()}${didYouMean(d.value(), FIELDS)}`)
      else if (d.nextArg()) throw d.argError()
    })
  }
  const errorLog = new ErrorLog(c.log, consolidations)
  const report = c.toControl((text) => errorLog.take(text))
  const { admits, part } = boundLines(c)
  const handler = (next: Handler): Handler => new Errors(next, report, admits)
  const stop = (): void => {
    for (const consolidation of consolidations) consolidation.stop()
  }
  return [part, { handler, seesNotify: true, stop }]
}

/** Bounds the errors that each thread reports. The control thread logs how many were left out. */
function boundLines(c: SetupContext): {
  admits: (tx: Transaction) => boolean
  part: DirectivePart
} {
  const slots = c.counters()
  slots.length = 1
  const budget = new LineBudget(LINES_MAX, LINES_PERIOD_MS)
  const summarize = (): void => {
    let count = 0
    slots.forEach((counts) => {
      count += counts.take(0)
    })
    const period = printDuration(LINES_PERIOD_MS)
    if (count > 0)
      c.log.error(`errors not logged: ${count} in the last ${period}`, 'errors-not-logged')
  }
  let stop: (() => void) | undefined
  const part: DirectivePart = {
    serving: () => {
      stop = c.timers.every(LINES_PERIOD_MS, summarize)
    },
    stop: () => {
      if (stop === undefined) return
      stop()
      summarize()
    },
  }
  const admits = (tx: Transaction): boolean => {
    if (budget.take(c.clock.monotonic())) return true
    slots.of(tx)[0]! += 1
    return false
  }
  return { admits, part }
}

function scanConsolidation(c: SetupContext, d: Dispenser): Consolidation {
  const args = d.remainingArgs()
  const [durationText, patternText] = args
  if (durationText === undefined || patternText === undefined || args.length > 4) throw d.argError()
  const periodMs = scanDuration(durationText)
  if (periodMs === undefined || periodMs <= 0) {
    throw d.error(`time: invalid duration ${JSON.stringify(durationText)}`)
  }
  const { level, showFirst } = scanOptions(d, args.slice(2))
  return new Consolidation({
    pattern: scanPattern(d, patternText),
    patternText,
    periodMs,
    periodText: printDuration(periodMs),
    write: (text) => c.log[level](text, 'query-failed'),
    showFirst,
    timers: c.timers,
  })
}

function scanOptions(d: Dispenser, args: string[]): { level: Level; showFirst: boolean } {
  const showFirst = args.at(-1) === 'show_first'
  const levels = showFirst ? args.slice(0, -1) : args
  if (levels.length > 1) throw d.argError()
  const level = LEVELS.find((known) => known === (levels[0] ?? 'error'))
  if (level === undefined) {
    throw d.error(
      `unknown log level argument in consolidate: ${levels[0]}${didYouMean(levels[0]!, LEVELS)}`,
    )
  }
  return { level, showFirst }
}
