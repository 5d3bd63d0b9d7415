import { printType } from '../../dns/iana/index.ts'
import { printName } from '../../dns/name/name.ts'
import { type Handler, Link, Trait } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'

/** Reports the error that a plugin below left in the response. */
export class Errors extends Link {
  readonly name = 'errors'
  readonly #report: (report: string) => void
  readonly #admits: (tx: Transaction) => boolean

  /** `report` receives texts for `ErrorLog.take`, for the errors that `admits` accepts. */
  constructor(
    next: Handler,
    report: (report: string) => void,
    admits: (tx: Transaction) => boolean = () => true,
  ) {
    super(next, 0, Trait.Failed)
    this.#admits = admits
    this.#report = report
  }

  override after(tx: Transaction, status: number): number {
    const { response, server } = tx
    if (response.error === '' || server.isHandingOver) return status
    if (this.#admits(tx)) this.#report(describe(tx, status))
    return status
  }
}

/**
 * Returns `RCODE NAME TYPE: `, a NUL, and the text of the error. The part before the NUL contains
 * no other NUL.
 */
function describe({ query, response }: Transaction, status: number): string {
  return `${status} ${printName(query.qname)} ${printType(query.qtype)}: \0${response.error}`
}
