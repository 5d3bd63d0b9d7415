import { Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import type { Response } from '../../dns/message/response.ts'
import { Section } from '../../dns/message/section.ts'
import { type Handler, Link, PASS, Trait } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'

const TTL_SECONDS = 8482
const HINFO_RDATA = new Uint8Array(Buffer.from('\x0dANY obsoleted\x0cSee RFC 8482', 'latin1'))

/**
 * Answers ANY with one HINFO record (RFC 8482 section 4.2), and passes all other queries on.
 * Validators reject an unsigned HINFO in a signed zone. So queries with DO get the records of the
 * zone if it is signed.
 */
export class Any extends Link {
  readonly name = 'any'

  constructor(next: Handler) {
    super(next, Trait.Any, Trait.Any)
  }

  override before(tx: Transaction): number {
    return isAny(tx) && !tx.query.dnssecOk ? answer(tx) : PASS
  }

  override after(tx: Transaction, status: number): number {
    return isAny(tx) ? finish(tx, status) : status
  }
}

function isAny({ query }: Transaction): boolean {
  return query.qclass === RRClass.IN && query.qtype === RRType.ANY
}

function finish(tx: Transaction, status: number): number {
  const { response } = tx
  if (isSigned(response)) return status
  response.count = 0
  response.authoritative = false
  response.truncated = false
  response.scopeBits = 0
  response.edeCode = -1
  return answer(tx)
}

function isSigned(response: Response): boolean {
  for (let i = 0; i < response.count; i++) if (response.type[i] === RRType.RRSIG) return true
  return false
}

function answer({ query, response }: Transaction): number {
  response.add(
    Section.Answer,
    query.qname,
    0,
    RRType.HINFO,
    RRClass.IN,
    TTL_SECONDS,
    HINFO_RDATA,
    0,
    HINFO_RDATA.length,
  )
  response.imputedLabel = query.labelCount
  response.answeredBy = 'any'
  response.rcode = Rcode.NOERROR
  return Rcode.NOERROR
}
