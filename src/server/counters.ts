import type { ServerCounters } from '../plugin/directive.ts'

/** What is counted by servers themselves: packets that never reached a chain, or broke in one. */
export const ServerCount = {
  Ignored: 0,
  FormErr: 1,
  NotImp: 2,
  BadVers: 3,
  Refused: 4,
  Panics: 5,
  /** Queries dropped because too many were waiting already. */
  Overloaded: 6,
} as const
export type ServerCount = (typeof ServerCount)[keyof typeof ServerCount]
const SERVER_COUNTS = 7

/** One thread's counts, in memory that others may read. */
export class ServerCounts {
  readonly counts: Float64Array

  constructor(counts: Float64Array = new Float64Array(new SharedArrayBuffer(SERVER_COUNTS * 8))) {
    this.counts = counts
  }

  add(count: ServerCount): void {
    this.counts[count]! += 1
  }
}

/**
 * The counts of all threads together. One object for the process: reloads hand it on, so that counters
 * never fall.
 */
export class ServerTotals implements ServerCounters {
  readonly #threads: ServerCounts[] = []

  constructor(...threads: readonly ServerCounts[]) {
    this.#threads.push(...threads)
  }

  include(thread: ServerCounts): void {
    this.#threads.push(thread)
  }

  get ignored(): number {
    return this.#total(ServerCount.Ignored)
  }

  get formErr(): number {
    return this.#total(ServerCount.FormErr)
  }

  get notImp(): number {
    return this.#total(ServerCount.NotImp)
  }

  get badVers(): number {
    return this.#total(ServerCount.BadVers)
  }

  get refused(): number {
    return this.#total(ServerCount.Refused)
  }

  get panics(): number {
    return this.#total(ServerCount.Panics)
  }

  get overloaded(): number {
    return this.#total(ServerCount.Overloaded)
  }

  #total(count: ServerCount): number {
    return this.#threads.reduce((sum, { counts }) => sum + counts[count]!, 0)
  }
}
