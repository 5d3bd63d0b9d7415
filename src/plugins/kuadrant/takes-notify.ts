import { Opcode, Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import { equalNames } from '../../dns/name/name.ts'
import { printAddress } from '../../dns/text/address.ts'
import type { Handler } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { KDRNT_ZONE } from '../../records/local-zone.ts'
import type { AnswerSource } from '../../zone/lookup/answer-source.ts'

/**
 * Accepts NOTIFYs (RFC 1996) for the zone kdrnt, by which peers announce new data, and leaves
 * queries to `zones`. Only the control thread knows the peers. A NOTIFY only makes the server poll
 * a peer sooner, so every sender gets the same answer.
 */
export class TakesNotify implements Handler {
  readonly name = 'kuadrant'
  readonly source: AnswerSource | undefined
  readonly #zones: Handler
  readonly #next: Handler
  readonly #report: (host: string) => void

  /** `report` gets the sender's address in canonical form. */
  constructor(zones: Handler, next: Handler, report: (host: string) => void) {
    this.#zones = zones
    this.source = zones.source
    this.#next = next
    this.#report = report
  }

  serve(tx: Transaction): number | Promise<number> {
    return tx.query.opcode === Opcode.NOTIFY ? this.#takeNotify(tx) : this.#zones.serve(tx)
  }

  #takeNotify(tx: Transaction): number | Promise<number> {
    const { query, response } = tx
    const qname = query.qname.subarray(0, query.qnameOctets)
    const isOurs = query.qclass === RRClass.IN && query.qtype === RRType.SOA
    if (!isOurs || !equalNames(qname, KDRNT_ZONE)) return this.#next.serve(tx)
    this.#report(printAddress(query.peerAddress, query.peerFamily === 1 ? 1 : 2))
    response.answeredBy = this.name
    response.authoritative = true
    return Rcode.NOERROR
  }
}
