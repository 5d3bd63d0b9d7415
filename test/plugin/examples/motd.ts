import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { Section } from '../../../src/dns/message/section.ts'
import type { Directive } from '../../../src/plugin/directive.ts'
import type { Handler } from '../../../src/plugin/handler.ts'
import type { Transaction } from '../../../src/plugin/transaction.ts'

const TTL_SECONDS = 60
const TEXT_OCTETS_MAX = 255

/** Answers queries for TXT with one text. */
class Motd implements Handler {
  readonly name = 'motd'
  readonly #next: Handler
  readonly #rdata: Uint8Array

  constructor(next: Handler, text: Uint8Array) {
    this.#next = next
    // A string of TXT has its length in front (RFC 1035 section 3.3.14).
    this.#rdata = Uint8Array.of(text.length, ...text)
  }

  serve(tx: Transaction): number | Promise<number> {
    const { query, response } = tx
    if (query.qtype !== RRType.TXT) return this.#next.serve(tx)
    const { qname } = query
    const rdata = this.#rdata
    response.authoritative = true
    response.rcode = Rcode.NOERROR
    response.add(
      Section.Answer,
      qname,
      0,
      RRType.TXT,
      RRClass.IN,
      TTL_SECONDS,
      rdata,
      0,
      rdata.length,
    )
    return Rcode.NOERROR
  }
}

/** `motd TEXT`: a message of the day, as TXT of every name. */
export const motd: Directive = {
  name: 'motd',
  setup({ dispenser }) {
    let text = new Uint8Array(0)
    while (dispenser.next()) text = new Uint8Array(Buffer.from(dispenser.onlyArg()))
    if (text.length > TEXT_OCTETS_MAX) {
      throw dispenser.error(`the text has ${text.length} octets; use at most ${TEXT_OCTETS_MAX}`)
    }
    return { handler: (next) => new Motd(next, text), answers: true }
  },
}
