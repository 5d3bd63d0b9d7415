import { scanDuration } from '../../../src/base/duration.ts'
import type { Timers } from '../../../src/base/timers.ts'
import type { Directive } from '../../../src/plugin/directive.ts'
import type { Handler } from '../../../src/plugin/handler.ts'
import type { Transaction } from '../../../src/plugin/transaction.ts'

/** Lets every query wait. */
class Slow implements Handler {
  readonly name = 'slow'
  /** Functions that end a wait at once. */
  readonly #waiting: Set<() => void>
  readonly #next: Handler
  readonly #timers: Timers
  readonly #delayMs: number

  constructor(next: Handler, delayMs: number, timers: Timers, waiting: Set<() => void>) {
    this.#next = next
    this.#delayMs = delayMs
    this.#timers = timers
    this.#waiting = waiting
  }

  async serve(tx: Transaction): Promise<number> {
    await new Promise<void>((resolve) => {
      const end = (): void => {
        stop()
        this.#waiting.delete(end)
        resolve()
      }
      const stop = this.#timers.after(this.#delayMs, end)
      this.#waiting.add(end)
    })
    return this.#next.serve(tx)
  }
}

/** `slow DURATION`: every reply is late, to test clients. */
export const slow: Directive = {
  name: 'slow',
  setup({ dispenser, timers, log }) {
    let delayMs = 0
    while (dispenser.next()) {
      const text = dispenser.onlyArg()
      delayMs = scanDuration(text) ?? -1
      if (delayMs < 0)
        throw dispenser.error(`invalid duration ${JSON.stringify(text)}; write 100ms or 2s`)
    }
    const waiting = new Set<() => void>()
    return {
      handler: (next) => new Slow(next, delayMs, timers, waiting),
      waits: true,
      start: () => log.info(`replies are ${delayMs} ms late`, 'slow-replies'),
      ready: () => (waiting.size > 1000 ? `${waiting.size} queries wait` : ''),
      // An instance that ends must not keep its queries.
      stop: () => {
        for (const end of waiting) end()
      },
    }
  },
}
