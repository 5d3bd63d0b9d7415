import type { Logger } from './log.ts'

/** Runs code that may fail. Resolves when it has ended, and never rejects. */
export type Guarded = (work: () => void | Promise<void>) => Promise<void>

/**
 * For callbacks of timers and watches, in which an exception would end the process. An unforeseen
 * fault costs only that run, and a log line that begins with `what` (`Looking for changes of
 * FILE`). The same fault is not logged again until a run succeeds.
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
      log.error(`${what} failed, the last valid state is kept: ${fault}`, 'background-task-failed')
      if (error instanceof Error && error.stack !== undefined) log.debug(error.stack, 'stack')
    }
  }
}
