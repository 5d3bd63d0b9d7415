import type { Directive } from '../../../src/plugin/directive.ts'
import { type Handler, Link, Trait } from '../../../src/plugin/handler.ts'
import type { Transaction } from '../../../src/plugin/transaction.ts'

const TTL_SECONDS_MAX = 2 ** 31 - 1

/** Lowers the TTLs of replies. */
class MaxTtl extends Link {
  readonly name = 'max_ttl'
  readonly #seconds: number

  constructor(next: Handler, seconds: number) {
    // No query concerns it, and every reply with records does.
    super(next, 0, Trait.Records)
    this.#seconds = seconds
  }

  override after({ response }: Transaction, status: number): number {
    const { ttlSeconds, count } = response
    for (let i = 0; i < count; i++) ttlSeconds[i] = Math.min(ttlSeconds[i]!, this.#seconds)
    return status
  }
}

/** `max_ttl SECONDS`: no record has a longer TTL. */
export const maxTtl: Directive = {
  name: 'max_ttl',
  setup({ dispenser }) {
    let seconds = TTL_SECONDS_MAX
    while (dispenser.next()) {
      const text = dispenser.onlyArg()
      seconds = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
      if (!(seconds <= TTL_SECONDS_MAX)) {
        throw dispenser.error(`TTL is ${JSON.stringify(text)}; use a number of seconds`)
      }
    }
    return { handler: (next) => new MaxTtl(next, seconds) }
  },
}
