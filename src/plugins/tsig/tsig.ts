import type { Clock } from '../../base/clock.ts'
import { Opcode, Rcode } from '../../dns/iana/index.ts'
import type { TsigKeyring } from '../../dns/tsig/key.ts'
import { printTsigError, verifyRequest } from '../../dns/tsig/verify-request.ts'
import type { Handler } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { ZoneSet } from '../../plugin/zone-set.ts'

/** A set of numbers, or all that there are. */
export type Required = ReadonlySet<number> | 'all'

export interface TsigOptions {
  readonly zones: ZoneSet
  readonly keyring: TsigKeyring
  readonly clock: Clock
  /** Types of queries that must be signed. */
  readonly qtypes: Required
  /** Opcodes of requests that must be signed. */
  readonly opcodes: Required
}

/** Checks signed requests, has their replies signed, and refuses unsigned ones where they must be (RFC 8945). */
export class Tsig implements Handler {
  readonly name = 'tsig'
  readonly #next: Handler
  readonly #options: TsigOptions

  constructor(next: Handler, options: TsigOptions) {
    this.#next = next
    this.#options = options
  }

  serve(tx: Transaction): number | Promise<number> {
    const { query, response } = tx
    if (this.#options.zones.match(query) === -1) return this.#next.serve(tx)
    if (query.tsigOffset !== 0) return this.#verify(tx)
    const { qtypes, opcodes } = this.#options
    const isQuery = query.opcode === Opcode.QUERY
    const mustBeSigned =
      (isQuery && requires(qtypes, query.qtype)) || requires(opcodes, query.opcode)
    if (!mustBeSigned) return this.#next.serve(tx)
    response.answeredBy = this.name
    return Rcode.REFUSED
  }

  #verify(tx: Transaction): number | Promise<number> {
    const { query, response } = tx
    const { keyring, clock } = this.#options
    const seconds = Math.floor(clock.now() / 1000)
    const verified = verifyRequest(
      query.packet,
      query.tsigOffset,
      query.packetOctets,
      keyring,
      seconds,
    )
    response.answeredBy = this.name
    if (verified === undefined) return Rcode.FORMERR
    response.signer = verified.signer
    if (verified.error !== 0) {
      response.error = `TSIG: ${printTsigError(verified.error)}`
      response.rcode = Rcode.NOTAUTH
      return Rcode.NOTAUTH
    }
    response.answeredBy = ''
    tx.tsigKey = verified.key
    return this.#next.serve(tx)
  }
}

function requires(required: Required, number: number): boolean {
  return required === 'all' || required.has(number)
}
