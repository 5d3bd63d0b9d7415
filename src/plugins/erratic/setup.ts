import { scanDuration } from '../../base/duration.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import type { Directive } from '../../plugin/directive.ts'
import { SENDS_LITTLE } from '../../plugin/reply-limiter.ts'
import { Erratic, type ErraticOptions } from './erratic.ts'

const AMOUNT_DEFAULT = 2
const AMOUNT_MAX = 2 ** 31 - 1
const DELAY_MS_DEFAULT = 100

/** `erratic { drop | truncate | delay }`: replies that are lost, cut or late, to test clients. */
export const erratic: Directive = {
  name: 'erratic',
  setup(c) {
    const options = scanOptions(c.dispenser)
    c.block.shared.provide(SENDS_LITTLE, true)
    // One count of queries for all threads, so that each AMOUNT is exact.
    return { handler: () => new Erratic(options, c.timers), answers: true, waits: true }
  },
}

function scanOptions(d: Dispenser): ErraticOptions {
  const options: ErraticOptions = { drop: -1, truncate: 0, delay: 0, delayMs: DELAY_MS_DEFAULT }
  while (d.next()) {
    d.noArgs()
    d.eachProperty(() => {
      const property = d.value()
      if (property === 'drop') options.drop = scanAmount(d, d.remainingArgs(0, 1))
      else if (property === 'truncate') options.truncate = scanAmount(d, d.remainingArgs(0, 1))
      else if (property === 'delay') scanDelay(d, options)
      else throw d.unknownProperty(property, ['drop', 'truncate', 'delay'])
    })
  }
  const isMild = options.truncate > 0 || options.delay > 0
  if (options.drop === -1) options.drop = isMild ? 0 : AMOUNT_DEFAULT
  return options
}

function scanDelay(d: Dispenser, options: ErraticOptions): void {
  const args = d.remainingArgs(0, 2)
  options.delay = scanAmount(d, args.slice(0, 1))
  const text = args[1]
  if (text === undefined) return
  const delayMs = scanDuration(text)
  if (delayMs === undefined || delayMs < 0) {
    throw d.error(`invalid duration ${JSON.stringify(text)}; write it as 100ms or 2s`)
  }
  options.delayMs = delayMs
}

function scanAmount(d: Dispenser, [text]: readonly string[]): number {
  if (text === undefined) return AMOUNT_DEFAULT
  const amount = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
  if (amount <= AMOUNT_MAX) return amount
  throw d.error(`invalid amount ${JSON.stringify(text)}; expect a number, 0 for none`)
}
