import { type Handler, Link, PASS, Trait } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'

/** Provides the identifier. The server adds it to replies to queries with the NSID option. */
export class Nsid extends Link {
  readonly name = 'nsid'
  readonly #data: Uint8Array

  constructor(next: Handler, data: Uint8Array) {
    super(next, Trait.Nsid, 0)
    this.#data = data
  }

  override before(tx: Transaction): number {
    tx.response.nsid = this.#data
    return PASS
  }
}
