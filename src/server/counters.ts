import type { DroppedCounters, ServerCounters } from '../plugin/directive.ts'

/**
 * Counts of what never reached a chain or broke in one. One object for the process: reloads hand it
 * on, so that counters never fall.
 */
export class ServerCounts implements ServerCounters {
  ignored = 0
  panics = 0
  /** Queries dropped because too many were waiting already. */
  overloaded = 0
  readonly dropped = new Map<string, DroppedCounts>()

  /** Those of one listen address; the Corefile bounds how many there are. */
  of(address: string): DroppedCounts {
    const counts = this.dropped.get(address) ?? new DroppedCounts()
    this.dropped.set(address, counts)
    return counts
  }
}

/** Counts of one listen address. */
export class DroppedCounts implements DroppedCounters {
  formErr = 0
  notImp = 0
  badVers = 0
  refused = 0
  readonly queries = new Float64Array(4)
}
