import type { Timers } from '../../../base/timers.ts'

const RETRY_MS = 100
const RETRY_MS_MAX = 30_000

/** Attempts that failed one after the other, and the wait for the next one, which is twice as long each time. */
export class Retries {
  readonly #timers: Pick<Timers, 'after'>
  #count = 0
  #fault = ''
  #cancel: (() => void) | undefined

  constructor(timers: Pick<Timers, 'after'>) {
    this.#timers = timers
  }

  /** Attempts that have failed since the last success. */
  get count(): number {
    return this.#count
  }

  /** Why the last one failed; '' = none has failed yet. */
  get fault(): string {
    return this.#fault
  }

  /** True while the next attempt waits for its time. */
  get isWaiting(): boolean {
    return this.#cancel !== undefined
  }

  reset(): void {
    this.#count = 0
  }

  /** Calls `again` once the wait is over. */
  fail(fault: string, again: () => void): void {
    this.#fault = fault
    const waitMs = Math.min(RETRY_MS * 2 ** this.#count++, RETRY_MS_MAX)
    this.close()
    this.#cancel = this.#timers.after(waitMs, () => {
      this.#cancel = undefined
      again()
    })
  }

  close(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }
}
