import type { Clock } from '../../base/clock.ts'
import { Opcode, Rcode } from '../../dns/iana/index.ts'
import type { TsigKeyring } from '../../dns/tsig/key.ts'
import { printTsigError, readSignedRequest, verifyMac } from '../../dns/tsig/verify-request.ts'
import type { CounterSlots } from '../../plugin/counter-slots.ts'
import { DROP, type Handler } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { ZoneSet } from '../../zone/lookup/zone-set.ts'
import { VerifyBudget } from './verify-budget.ts'

export type Required = ReadonlySet<number> | 'all'

interface TsigOptions {
  readonly zones: ZoneSet
  readonly keyring: TsigKeyring
  readonly clock: Clock
  /** Types of queries that must be signed. */
  readonly qtypes: Required
  /** Opcodes of requests that must be signed. */
  readonly opcodes: Required
  /** Counts requests that were dropped unverified, in the first counter. */
  readonly slots: CounterSlots
}

/**
 * Verifies signed requests, signs their replies, and refuses unsigned requests where a signature is
 * required (RFC 8945).
 */
export class Tsig implements Handler {
  readonly name = 'tsig'
  readonly #next: Handler
  readonly #options: TsigOptions
  readonly #budget: VerifyBudget

  constructor(next: Handler, options: TsigOptions) {
    this.#next = next
    this.#options = options
    this.#budget = new VerifyBudget(options.clock)
    options.slots.length = 1
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
    const { keyring, clock, slots } = this.#options
    const { packet, packetOctets, tsigOffset } = query
    const request = readSignedRequest(packet, tsigOffset, packetOctets, keyring)
    response.answeredBy = this.name
    if (request === undefined) return Rcode.FORMERR
    let verified = request
    if (!('signer' in verified)) {
      if (!this.#budget.take(query)) {
        slots.of(tx)[0]! += 1
        return DROP
      }
      verified = verifyMac(packet, tsigOffset, verified, Math.floor(clock.now() / 1000))
      if (verified.error === 0) this.#budget.succeed(query)
    }
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
