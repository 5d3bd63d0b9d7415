import type { ServerCounters } from '../plugin/directive.ts'

/**
 * Counts of what never reached a chain or broke in one. One object for the process: reloads hand it
 * on, so that counters never fall.
 */
export class ServerCounts implements ServerCounters {
  ignored = 0
  formErr = 0
  notImp = 0
  badVers = 0
  refused = 0
  panics = 0
  /** Queries dropped because too many were waiting already. */
  overloaded = 0
}
