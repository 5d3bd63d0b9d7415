import { scanDuration } from '../../base/duration.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { nextOnce } from '../../plugin/arguments/once.ts'
import type { Directive } from '../../plugin/directive.ts'
import { Cancel } from './cancel.ts'

/** CoreDNS's default: clients give up after five seconds. */
const TIMEOUT_MS_DEFAULT = 5001

/** `cancel [TIMEOUT]`: limits the time of a query. */
export const cancel: Directive = {
  name: 'cancel',
  setup(c) {
    const d = c.dispenser
    let timeoutMs = TIMEOUT_MS_DEFAULT
    for (let i = 0; nextOnce(d, i); i++) {
      const args = d.remainingArgs(0, 1)
      if (args[0] !== undefined) timeoutMs = scanTimeout(d, args[0])
      d.noBlock()
    }
    return { handler: (next) => new Cancel(next, timeoutMs) }
  },
}

function scanTimeout(d: Dispenser, text: string): number {
  const ms = scanDuration(text)
  if (ms === undefined) throw d.error(`invalid duration: ${JSON.stringify(text)}`)
  if (ms <= 0) throw d.error(`the duration must be above 0: ${JSON.stringify(text)}`)
  return ms
}
