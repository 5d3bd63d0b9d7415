import { Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import { Section } from '../../dns/message/response.ts'
import type { Handler } from '../../plugin/handler.ts'
import type { PlainLink } from '../../plugin/plain.ts'
import type { Transaction } from '../../plugin/transaction.ts'

const TTL_SECONDS = 8482
const HINFO_RDATA = new Uint8Array(Buffer.from('\x0dANY obsoleted\x0cSee RFC 8482', 'latin1'))

/** Answers ANY with one HINFO record (RFC 8482 section 4.2); hands everything else on. */
export class Any implements Handler {
  readonly name = 'any'
  readonly plain: PlainLink
  readonly #next: Handler

  constructor(next: Handler) {
    this.#next = next
    this.plain = { kind: 'pass', next }
  }

  serve(tx: Transaction): number | Promise<number> {
    const { qclass, qtype } = tx.query
    if (qclass !== RRClass.IN || qtype !== RRType.ANY) return this.#next.serve(tx)
    const response = tx.response
    response.add(
      Section.Answer,
      tx.query.qname,
      0,
      RRType.HINFO,
      RRClass.IN,
      TTL_SECONDS,
      HINFO_RDATA,
      0,
      HINFO_RDATA.length,
    )
    response.imputedLabel = tx.query.labelCount
    response.answeredBy = 'any'
    response.rcode = Rcode.NOERROR
    return Rcode.NOERROR
  }
}
