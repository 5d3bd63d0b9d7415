import type { FastPathRole } from '../../plugin/fast-path.ts'
import type { Handler } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'

/** Provides the identifier. The server adds it to replies to queries with the NSID option. */
export class Nsid implements Handler {
  readonly name = 'nsid'
  /** A query with the NSID option is not plain. */
  readonly plain: FastPathRole
  readonly #next: Handler
  readonly #data: Uint8Array

  constructor(next: Handler, data: Uint8Array) {
    this.#next = next
    this.plain = { kind: 'pass', next }
    this.#data = data
  }

  serve(tx: Transaction): number | Promise<number> {
    tx.response.nsid = this.#data
    return this.#next.serve(tx)
  }
}
