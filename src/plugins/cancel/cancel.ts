import { type Handler, Link, PASS, Trait } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'

/** Sets the time at which plugins that wait for others must give up. */
export class Cancel extends Link {
  readonly name = 'cancel'
  readonly #timeoutMs: number

  constructor(next: Handler, timeoutMs: number) {
    super(next, Trait.Every, 0)
    this.#timeoutMs = timeoutMs
  }

  override before(tx: Transaction): number {
    tx.deadlineMs = tx.startedMs + this.#timeoutMs
    return PASS
  }
}
