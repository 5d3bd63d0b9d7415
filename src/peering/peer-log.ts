import type { Clock } from '../base/clock.ts'
import { LineBudget } from '../base/telemetry/line-budget.ts'
import type { Logger } from '../base/telemetry/log.ts'

/** Most lines about one peer in a minute. */
const LINES_MAX = 20
const PERIOD_MS = 60_000

/**
 * Returns a logger for lines about one peer, with a bound: at each poll a peer can fail in another way, recover, or
 * report another site. `peer`: its address.
 */
export function boundPeerLog(peer: string, log: Logger, clock: Pick<Clock, 'monotonic'>): Logger {
  const budget = new LineBudget(LINES_MAX, PERIOD_MS)
  let unlogged = 0
  const bound = (write: (text: string) => void) => {
    return (text: string): void => {
      if (!budget.take(clock.monotonic())) {
        unlogged++
        return
      }
      if (unlogged > 0) log.warning(`peer ${peer}: ${unlogged} more lines`)
      unlogged = 0
      write(text)
    }
  }
  return {
    debug: (text) => log.debug(text),
    info: bound((text) => log.info(text)),
    warning: bound((text) => log.warning(text)),
    error: (text) => log.error(text),
  }
}
