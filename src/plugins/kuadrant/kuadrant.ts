import { Rcode } from '../../dns/iana/rcodes.ts'
import { RRType } from '../../dns/iana/types.ts'
import { answerFromImage, NOT_OURS, withdrawAnswer } from '../../plugin/authority.ts'
import type { Fallthrough } from '../../plugin/fallthrough.ts'
import type { Handler } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { ZoneAnswerer } from '../../zone/lookup/answer.ts'

/** Answers from the zones made of DNSRecords. */
export class KuadrantHandler implements Handler {
  readonly name = 'kuadrant'
  readonly #next: Handler
  readonly #answerer: ZoneAnswerer
  readonly #fallthrough: Fallthrough

  constructor(next: Handler, answerer: ZoneAnswerer, fallthrough: Fallthrough) {
    this.#next = next
    this.#answerer = answerer
    this.#fallthrough = fallthrough
  }

  /** @hot */
  serve(tx: Transaction): number | Promise<number> {
    const { qtype } = tx.query
    if (qtype === RRType.AXFR || qtype === RRType.IXFR) return this.#refuseTransfer(tx)
    const status = answerFromImage(tx, this.#answerer)
    if (status === NOT_OURS) return this.#next.serve(tx)
    if (status === Rcode.NXDOMAIN && this.#fallthrough.through(tx.query)) {
      withdrawAnswer(tx.response)
      return this.#next.serve(tx)
    }
    tx.response.answeredBy = this.name
    return status
  }

  /** A transfer that is not served must not look like a zone without records. */
  #refuseTransfer(tx: Transaction): number | Promise<number> {
    const { reader } = this.#answerer
    reader.refresh()
    return reader.matchZone(tx.query, 0) === 0 ? this.#next.serve(tx) : Rcode.REFUSED
  }
}
