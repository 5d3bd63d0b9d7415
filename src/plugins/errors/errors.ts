import { printType } from '../../dns/iana/index.ts'
import { printName } from '../../dns/name/name.ts'
import type { Handler } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Consolidation } from './consolidation.ts'

/** Logs the error that a plugin below left in the response: `RCODE NAME TYPE: TEXT`. */
export class Errors implements Handler {
  readonly name = 'errors'
  readonly #next: Handler
  readonly #log: Logger
  readonly #consolidations: readonly Consolidation[]

  constructor(next: Handler, log: Logger, consolidations: readonly Consolidation[]) {
    this.#next = next
    this.#log = log
    this.#consolidations = consolidations
  }

  serve(tx: Transaction): number | Promise<number> {
    const status = this.#next.serve(tx)
    if (typeof status === 'number') return this.#finish(tx, status)
    return status.then((late) => this.#finish(tx, late))
  }

  #finish(tx: Transaction, status: number): number {
    if (tx.response.error !== '') this.#report(tx, status)
    return status
  }

  #report(tx: Transaction, status: number): void {
    const { query } = tx
    const text = tx.response.error
    const line = `${status} ${printName(query.qname)} ${printType(query.qtype)}: ${text}`
    for (const consolidation of this.#consolidations) {
      if (consolidation.take(text, line)) return
    }
    this.#log.error(line)
  }
}
