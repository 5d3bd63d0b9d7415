import { LineBudget } from '../../base/telemetry/line-budget.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'

const LINE_PERIOD_MS = 10_000

/** Queries in progress; 0 = no limit. */
export interface ConcurrencyLimits {
  readonly total: number
  readonly perClient: number
}

/** Bounds the queries of clients that are in progress. */
export class Concurrency {
  readonly #limits: ConcurrencyLimits
  readonly #log: Logger
  readonly #budget = new LineBudget(1, LINE_PERIOD_MS)
  readonly #perClient = new Map<string, number>()
  #total = 0
  #whenIdle: () => void = () => {}

  constructor(limits: ConcurrencyLimits, log: Logger) {
    this.#limits = limits
    this.#log = log
  }

  /** Returns false if a limit is reached. Else the caller calls `leave` once. `nowMs`: monotonic. */
  enter(client: string, nowMs: number): boolean {
    const { total, perClient } = this.#limits
    const own = this.#perClient.get(client) ?? 0
    if (perClient > 0 && own >= perClient) return this.#refuse(nowMs, `${perClient} of ${client}`)
    if (total > 0 && this.#total >= total) return this.#refuse(nowMs, `${total}`)
    this.#perClient.set(client, own + 1)
    this.#total++
    return true
  }

  leave(client: string): void {
    const own = this.#perClient.get(client) ?? 0
    if (own > 1) this.#perClient.set(client, own - 1)
    else this.#perClient.delete(client)
    this.#total--
    if (this.#total === 0) this.#whenIdle()
  }

  /** Resolves once no query is in progress, at the latest after `limitMs`. */
  idle(timers: Timers, limitMs: number): Promise<void> {
    if (this.#total === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const cancel = timers.after(limitMs, resolve)
      this.#whenIdle = () => {
        cancel()
        resolve()
      }
    })
  }

  #refuse(nowMs: number, limit: string): false {
    if (this.#budget.take(nowMs)) {
      this.#log.warning(
        `queries in progress: limit of ${limit} reached, new ones get SERVFAIL`,
        'egress-queries-limit',
      )
    }
    return false
  }
}
