import { RRClass } from '../../dns/iana/classes.ts'
import { Rcode } from '../../dns/iana/rcodes.ts'
import { RRType } from '../../dns/iana/types.ts'
import { type Response, signedType } from '../../dns/message/response.ts'
import { Section } from '../../dns/message/section.ts'
import { embedIPv4 } from '../../dns/nat64.ts'
import type { Cidr } from '../../dns/text/address.ts'
import type { CounterSlots } from '../../plugin/counter-slots.ts'
import { DROP, type Handler } from '../../plugin/handler.ts'
import { synthesisTtlSecondsMax } from '../../plugin/soa-ttl.ts'
import { isUnwritten } from '../../plugin/status.ts'
import type { Transaction } from '../../plugin/transaction.ts'

const IPV4 = 1
const IPV4_OCTETS = 4
const IPV6_OCTETS = 16
const CHECKING_DISABLED = 0x0010

interface Dns64Options {
  /** 32, 40, 48, 56, 64 or 96 bits. */
  readonly prefix: Cidr
  /** Replaces the AAAA records of replies that have some. */
  readonly translatesAll: boolean
  /** Also serves clients that query over IPv4. */
  readonly allowsIPv4: boolean
}

/**
 * Makes AAAA records from the A records of names without AAAA records (RFC 6147). It runs the links
 * below twice: first for AAAA, and if the reply has none, for A.
 */
export class Dns64 implements Handler {
  readonly name = 'dns64'
  readonly #next: Handler
  readonly #options: Dns64Options
  readonly #slots: CounterSlots

  constructor(next: Handler, options: Dns64Options, slots: CounterSlots) {
    this.#next = next
    this.#options = options
    this.#slots = slots
    slots.length = 1
  }

  serve(tx: Transaction): number | Promise<number> {
    if (!this.#concerns(tx)) return this.#next.serve(tx)
    const { chainDepth } = tx
    const status = this.#next.serve(tx)
    if (typeof status === 'number') return this.#synthesize(tx, status, chainDepth)
    return status.then((late) => this.#synthesize(tx, late, chainDepth))
  }

  /** A client that sets DO and CD validates answers itself (RFC 6147 section 5.5). */
  #concerns({ query }: Transaction): boolean {
    if (query.qtype !== RRType.AAAA || query.qclass !== RRClass.IN) return false
    if (query.peerFamily === IPV4 && !this.#options.allowsIPv4) return false
    return !query.dnssecOk || (query.flags & CHECKING_DISABLED) === 0
  }

  /** Continues after the reply for AAAA. `chainDepth`: that of the query. */
  #synthesize(tx: Transaction, status: number, chainDepth: number): number | Promise<number> {
    const { query, response } = tx
    if (status === DROP || isUnwritten(status) || tx.server.isHandingOver) return status
    // The name does not exist, so it has no A records either (RFC 6147 section 5.1.2).
    if (response.rcode === Rcode.NXDOMAIN) return status
    if (!this.#options.translatesAll && hasAddress(response)) return status
    const ttlSecondsMax = synthesisTtlSecondsMax(response)
    response.startOver()
    tx.chainDepth = chainDepth
    query.qtype = RRType.A
    tx.nat64Prefix = this.#options.prefix
    const below = this.#next.serve(tx)
    if (typeof below === 'number') return this.#finish(tx, below, ttlSecondsMax)
    return below.then(
      (late) => this.#finish(tx, late, ttlSecondsMax),
      (error: unknown) => {
        query.qtype = RRType.AAAA
        tx.nat64Prefix = undefined
        throw error
      },
    )
  }

  /** Continues after the reply for A. */
  #finish(tx: Transaction, status: number, ttlSecondsMax: number): number {
    tx.query.qtype = RRType.AAAA
    tx.nat64Prefix = undefined
    if (status === DROP || isUnwritten(status)) return status
    translate(tx.response, this.#options.prefix, ttlSecondsMax)
    if (!tx.server.isHandingOver) this.#slots.of(tx)[0]! += 1
    return status
  }
}

function hasAddress(response: Response): boolean {
  for (let i = 0; i < response.count; i++) {
    if (response.section[i] === Section.Answer && response.type[i] === RRType.AAAA) return true
  }
  return false
}

/** Replaces the A records of the answer. Their signatures are not valid for AAAA records. */
function translate(response: Response, prefix: Cidr, ttlSecondsMax: number): void {
  const octets = new Uint8Array(response.count * IPV6_OCTETS)
  let kept = 0
  let synthesized = 0
  for (let i = 0; i < response.count; i++) {
    const isAnswer = response.section[i] === Section.Answer
    if (isAnswer && response.type[i] === RRType.RRSIG && signedType(response, i) === RRType.A) {
      continue
    }
    response.move(i, kept)
    if (isAnswer && response.type[i] === RRType.A && response.rdataOctets[i] === IPV4_OCTETS) {
      const at = synthesized * IPV6_OCTETS
      embedIPv4(prefix, response.rdataBytes[i]!, response.rdataOffset[i]!, octets, at)
      response.type[kept] = RRType.AAAA
      response.ttlSeconds[kept] = Math.min(response.ttlSeconds[i]!, ttlSecondsMax)
      response.rdataBytes[kept] = octets
      response.rdataOffset[kept] = at
      response.rdataOctets[kept] = IPV6_OCTETS
      synthesized++
    }
    kept++
  }
  response.count = kept
  if (synthesized === 0) return
  response.authenticData = false
  response.needsSigning = true
}
