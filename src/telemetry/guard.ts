import type { Logger } from './log.ts'

/** Runs something that may fail; resolves when it is over, and never rejects. */
export type Guarded = (work: () => void | Promise<void>) => Promise<void>

/**
 * For what timers and watches call, where an exception would end the process: a fault that nobody
 * foresaw costs that one run, and a line in the log that begins with `what` (`Looking for changes of
 * FILE`). The same fault again, before a run went well, is not told again.
 */
export function guarding(log: Logger, what: string): Guarded {
  let lastFault = ''
  return async (work) => {
    try {
      await work()
      lastFault = ''
    } catch (error) {
      const fault = error instanceof Error ? error.message : String(error)
      if (fault === lastFault) return
      lastFault = fault
      log.error(`${what} failed, what was good before stays: ${fault}`)
      if (error instanceof Error && error.stack !== undefined) log.debug(error.stack)
    }
  }
}
