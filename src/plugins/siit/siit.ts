import { RRClass } from '../../dns/iana/classes.ts'
import { Rcode } from '../../dns/iana/rcodes.ts'
import { RRType } from '../../dns/iana/types.ts'
import { type Response, signedType } from '../../dns/message/response.ts'
import { Section } from '../../dns/message/section.ts'
import type { CounterSlots } from '../../plugin/counter-slots.ts'
import { DROP, type Handler } from '../../plugin/handler.ts'
import { synthesisTtlSecondsMax } from '../../plugin/soa-ttl.ts'
import { isUnwritten } from '../../plugin/status.ts'
import type { Transaction } from '../../plugin/transaction.ts'

const IPV4_OCTETS = 4
const IPV6_OCTETS = 16
const CHECKING_DISABLED = 0x0010

/** Returns the IPv4 address for the IPv6 address of 16 octets at `from[offset]`; undefined = it has none. */
export type IPv4Of = (from: Uint8Array, offset: number) => Uint8Array | undefined

/**
 * Makes A records from the AAAA records of names without A records, for servers that have only IPv6 and that IPv4
 * clients reach through a translator (SIIT, RFC 7915). It runs the links below first for A, and if the reply has none,
 * for AAAA; if no address can be translated, once more for A.
 */
export class Siit implements Handler {
  readonly name = 'siit'
  readonly #next: Handler
  readonly #ipv4Of: IPv4Of
  readonly #slots: CounterSlots

  constructor(next: Handler, ipv4Of: IPv4Of, slots: CounterSlots) {
    this.#next = next
    this.#ipv4Of = ipv4Of
    this.#slots = slots
    slots.length = 1
  }

  serve(tx: Transaction): number | Promise<number> {
    if (!concerns(tx)) return this.#next.serve(tx)
    const { chainDepth } = tx
    const status = this.#next.serve(tx)
    if (typeof status === 'number') return this.#lookUp(tx, status, chainDepth)
    return status.then((late) => this.#lookUp(tx, late, chainDepth))
  }

  /** Continues after the reply for A. `chainDepth`: that of the query. */
  #lookUp(tx: Transaction, status: number, chainDepth: number): number | Promise<number> {
    const { query, response } = tx
    if (status === DROP || isUnwritten(status) || tx.server.isHandingOver) return status
    if (response.truncated || response.rcode === Rcode.NXDOMAIN || hasIPv4(response)) return status
    const ttlSecondsMax = synthesisTtlSecondsMax(response)
    response.startOver()
    tx.chainDepth = chainDepth
    query.qtype = RRType.AAAA
    const below = this.#next.serve(tx)
    if (typeof below === 'number') return this.#finish(tx, below, chainDepth, ttlSecondsMax)
    return below.then(
      (late) => this.#finish(tx, late, chainDepth, ttlSecondsMax),
      (error: unknown) => {
        query.qtype = RRType.A
        throw error
      },
    )
  }

  /** Continues after the reply for AAAA. */
  #finish(
    tx: Transaction,
    status: number,
    chainDepth: number,
    ttlSecondsMax: number,
  ): number | Promise<number> {
    const { query, response } = tx
    query.qtype = RRType.A
    if (status === DROP || isUnwritten(status) || tx.server.isHandingOver) return status
    if (response.rcode !== Rcode.NOERROR) return status
    if (this.#translate(response, ttlSecondsMax)) {
      this.#slots.of(tx)[0]! += 1
      return status
    }
    response.startOver()
    tx.chainDepth = chainDepth
    return this.#next.serve(tx)
  }

  /**
   * Replaces the AAAA records of the answer; those without an IPv4 address are left out. Returns false if none has
   * one. The signatures of AAAA records are not valid for A records.
   */
  #translate(response: Response, ttlSecondsMax: number): boolean {
    let kept = 0
    let translated = 0
    for (let i = 0; i < response.count; i++) {
      const isAnswer = response.section[i] === Section.Answer
      const isSigned = isAnswer && response.type[i] === RRType.RRSIG
      if (isSigned && signedType(response, i) === RRType.AAAA) continue
      response.move(i, kept)
      const isAddress = isAnswer && response.type[i] === RRType.AAAA
      if (isAddress && response.rdataOctets[i] === IPV6_OCTETS) {
        const ipv4 = this.#ipv4Of(response.rdataBytes[i]!, response.rdataOffset[i]!)
        if (ipv4 === undefined) continue
        response.type[kept] = RRType.A
        response.ttlSeconds[kept] = Math.min(response.ttlSeconds[i]!, ttlSecondsMax)
        response.rdataBytes[kept] = ipv4
        response.rdataOffset[kept] = 0
        response.rdataOctets[kept] = IPV4_OCTETS
        translated++
      }
      kept++
    }
    response.count = kept
    if (translated > 0) response.authenticData = false
    response.needsSigning ||= translated > 0
    return translated > 0
  }
}

/** A client that sets DO and CD validates answers itself. */
function concerns({ query }: Transaction): boolean {
  if (query.qtype !== RRType.A || query.qclass !== RRClass.IN) return false
  return !query.dnssecOk || (query.flags & CHECKING_DISABLED) === 0
}

function hasIPv4(response: Response): boolean {
  for (let i = 0; i < response.count; i++) {
    if (response.section[i] === Section.Answer && response.type[i] === RRType.A) return true
  }
  return false
}
