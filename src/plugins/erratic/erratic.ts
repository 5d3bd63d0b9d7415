import type { Timers } from '../../base/timers.ts'
import { RRClass } from '../../dns/iana/classes.ts'
import { Rcode } from '../../dns/iana/rcodes.ts'
import { RRType } from '../../dns/iana/types.ts'
import { Section } from '../../dns/message/section.ts'
import { scanAddress } from '../../dns/text/address.ts'
import { DROP, type Handler } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'

/** One of so many queries is concerned; 0 = none. */
export interface ErraticOptions {
  drop: number
  truncate: number
  delay: number
  delayMs: number
}

const TTL_SECONDS = 0
/** Addresses for documentation (RFC 5737, RFC 3849). */
const IPV4 = scanAddress('192.0.2.53')!.bytes
const IPV6 = scanAddress('2001:db8::53')!.bytes

/** Answers A and AAAA with fixed addresses, and drops, truncates or delays a part of the replies. */
export class Erratic implements Handler {
  readonly name = 'erratic'
  readonly #options: ErraticOptions
  readonly #timers: Timers
  #queries = 0

  constructor(options: ErraticOptions, timers: Timers) {
    this.#options = options
    this.#timers = timers
  }

  serve(tx: Transaction): number | Promise<number> {
    const { drop, truncate, delay, delayMs } = this.#options
    const number = this.#queries++
    if (isConcerned(number, drop)) return DROP
    if (!isConcerned(number, delay)) return answer(tx, isConcerned(number, truncate))
    return new Promise((resolve) => {
      this.#timers.after(delayMs, () => resolve(answer(tx, isConcerned(number, truncate))))
    })
  }
}

function isConcerned(number: number, amount: number): boolean {
  return amount > 0 && number % amount === 0
}

function answer({ query, response }: Transaction, isTruncated: boolean): number {
  const { qtype } = query
  if (qtype !== RRType.A && qtype !== RRType.AAAA) return Rcode.SERVFAIL
  const rdata = qtype === RRType.A ? IPV4 : IPV6
  response.authoritative = true
  response.truncated = isTruncated
  response.rcode = Rcode.NOERROR
  response.add(
    Section.Answer,
    query.qname,
    0,
    qtype,
    RRClass.IN,
    TTL_SECONDS,
    rdata,
    0,
    rdata.length,
  )
  return Rcode.NOERROR
}
