import { printDuration, scanDuration } from '../../base/duration.ts'
import { didYouMean } from '../../base/nearest.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import type { BlockConfig, Directive } from '../../plugin/directive.ts'

const TIMEOUT_MIN_MS = 1000
const TIMEOUT_MAX_MS = 24 * 3_600_000
const QUERIES_MAX = 2 ** 31 - 1

const OPTIONS = ['read', 'write', 'idle', 'maxtcpqueries']

/** `timeouts { read DUR | write DUR | idle DUR | maxtcpqueries N }`: limits of TCP connections. */
export const timeouts: Directive = {
  name: 'timeouts',
  setup(c) {
    while (c.dispenser.next()) scanBlock(c.dispenser, c.block.timeouts)
    return {}
  },
}

function scanBlock(d: Dispenser, timeouts: BlockConfig['timeouts']): void {
  d.noArgs()
  let options = 0
  d.eachProperty(() => {
    const option = d.value()
    if (option === 'read') timeouts.readMs = scanTimeout(d)
    else if (option === 'write') timeouts.writeMs = scanTimeout(d)
    else if (option === 'idle') timeouts.idleMs = scanTimeout(d)
    else if (option === 'maxtcpqueries') timeouts.queriesMax = scanQueries(d)
    else throw d.error(`unknown option: '${option}'${didYouMean(option, OPTIONS)}`)
    options++
  })
  if (options === 0) throw d.error('timeouts block with no timeouts specified')
}

/** A duration; a bare number counts seconds. */
function scanTimeout(d: Dispenser): number {
  const arg = d.onlyArg()
  const timeoutMs = scanDuration(/^\d+$/.test(arg) ? `${arg}s` : arg)
  if (timeoutMs === undefined) {
    throw d.error(`failed to parse duration '${arg}': expected a number with a unit, such as 10s`)
  }
  if (timeoutMs < TIMEOUT_MIN_MS || timeoutMs > TIMEOUT_MAX_MS) {
    const given = printDuration(timeoutMs)
    throw d.error(`timeout provided '${given}' needs to be between 1 second and 24 hours`)
  }
  return timeoutMs
}

function scanQueries(d: Dispenser): number {
  const arg = d.onlyArg()
  const count = /^(?:-1|\d{1,10})$/.test(arg) ? Number(arg) : 0
  if (count === 0 || count > QUERIES_MAX) {
    throw d.error(`maxtcpqueries '${arg}' must be a positive number, or -1 for no limit`)
  }
  return count
}
