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
  const bound = (write: Logger['info']): Logger['info'] => {
    return (text, event, fields) => {
      if (!budget.take(clock.monotonic())) {
        unlogged++
        return
      }
      if (unlogged > 0) log.warning(`peer ${peer}: ${unlogged} more lines`, 'peer-lines-more')
      unlogged = 0
      write(text, event, fields)
    }
  }
  return {
    debug: log.debug,
    info: bound(log.info),
    warning: bound(log.warning),
    error: log.error,
  }
}
