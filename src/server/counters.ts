import type { Losses, ServerCounters } from '../plugin/directive.ts'

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
  readonly #losses: (() => Losses)[] = []

  constructor(...threads: readonly ServerCounts[]) {
    this.#threads.push(...threads)
  }

  include(thread: ServerCounts): void {
    this.#threads.push(thread)
  }

  /** Adds what is lost elsewhere; `read` is asked whenever somebody looks. */
  includeLosses(read: () => Losses): void {
    this.#losses.push(read)
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

  get losses(): Losses {
    const total: Record<string, number> = { overloaded: this.#total(ServerCount.Overloaded) }
    for (const read of this.#losses) {
      for (const [name, count] of Object.entries(read())) total[name] = (total[name] ?? 0) + count
    }
    return total
  }

  #total(count: ServerCount): number {
    return this.#threads.reduce((sum, { counts }) => sum + counts[count]!, 0)
  }
}
