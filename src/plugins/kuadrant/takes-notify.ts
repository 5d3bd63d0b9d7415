import { Opcode, Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import { equalNames } from '../../dns/name/name.ts'
import { printAddress } from '../../dns/text/address.ts'
import type { Handler } from '../../plugin/handler.ts'
import type { PlainLink } from '../../plugin/plain.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { KDRNT_ZONE } from '../../record/local-zone.ts'

/** Behind the address of a sender whose signature `tsig` found good. */
const SIGNED = ' signed'

/** What a `TakesNotify` reports. */
export function scanSender(text: string): { readonly host: string; readonly isSigned: boolean } {
  const isSigned = text.endsWith(SIGNED)
  return { host: isSigned ? text.slice(0, -SIGNED.length) : text, isSigned }
}

/**
 * Takes in NOTIFYs (RFC 1996) for the zone kdrnt, by which peers say that they have something new, and leaves
 * queries to `zones`. Who may be a peer is known on the control thread alone, and a NOTIFY only has a peer
 * asked sooner than it would be, or is passed on or not: so everybody gets the same answer.
 */
export class TakesNotify implements Handler {
  readonly name = 'kuadrant'
  /** Plain queries are none of its business. */
  readonly plain: PlainLink | undefined
  readonly #zones: Handler
  readonly #next: Handler
  readonly #report: (text: string) => void

  /** `report` is given the sender, as `scanSender` reads it. */
  constructor(zones: Handler, next: Handler, report: (text: string) => void) {
    this.#zones = zones
    this.plain = zones.plain
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
    const host = printAddress(query.peerAddress, query.peerFamily === 1 ? 1 : 2)
    this.#report(tx.tsigKey === undefined ? host : `${host}${SIGNED}`)
    response.answeredBy = this.name
    response.authoritative = true
    return Rcode.NOERROR
  }
}
