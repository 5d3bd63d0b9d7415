import { randomFillSync } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { createRateTable, Debit, RateTable, rateOf, ticksOf } from '../../base/rate-table.ts'
import { TABULATION_WORDS, TabulationHash } from '../../base/tabulation-hash.ts'
import type { Query } from '../../dns/message/query.ts'

/** Failures per second that are verified: of a network without a success, of one with, of all those without. */
export const UNKNOWN_PER_SECOND = 20
export const KNOWN_PER_SECOND = 500
export const ALL_PER_SECOND = 1000

// Without debts: a peer whose address is forged has part of its signatures verified during the flood, and all of them
// right after it.
const UNKNOWN = rateOf(UNKNOWN_PER_SECOND, 0)
const KNOWN = rateOf(KNOWN_PER_SECOND, 0)
const ALL = rateOf(ALL_PER_SECOND, 0)

const ACCOUNTS = 4096
/** Networks that are remembered for a success; a power of two. */
const KNOWN_MAX = 1024
const IPV4_BITS = 24
const IPV6_BITS = 56

/**
 * Bounds the time that MACs of wrong signatures take, in one thread: by network, and in all. A MAC costs some
 * 10 µs, so forged signatures take no more than about one per cent of a CPU. Accounts of TCP, whose addresses are
 * real, are apart from those of UDP.
 */
export class VerifyBudget {
  readonly #clock: Clock
  readonly #hash = new TabulationHash(randomFillSync(new Int32Array(TABULATION_WORDS)))
  readonly #table = new RateTable(createRateTable(ACCOUNTS))
  /** By the low bits of a network's hash: the hash, if one of its signatures was right. */
  readonly #known = new Int32Array(KNOWN_MAX)

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** True = the signature of the query may be verified. Ends with `succeed` if it is right. */
  take(query: Query): boolean {
    const nowTicks = ticksOf(this.#clock.monotonic())
    const network = this.#networkOf(query)
    if (this.#isKnown(network)) {
      return this.#table.debit(network, nowTicks, KNOWN, 0) === Debit.Paid
    }
    if (this.#table.debit(network, nowTicks, UNKNOWN, 0) !== Debit.Paid) return false
    return this.#table.debit(this.#allOf(query), nowTicks, ALL, 0) === Debit.Paid
  }

  /** The signature was right: it costs nothing. */
  succeed(query: Query): void {
    const network = this.#networkOf(query)
    if (this.#isKnown(network)) {
      this.#table.credit(network, KNOWN)
      return
    }
    this.#table.credit(network, UNKNOWN)
    this.#table.credit(this.#allOf(query), ALL)
    this.#known[network & (KNOWN_MAX - 1)] = network
  }

  #isKnown(network: number): boolean {
    return this.#known[network & (KNOWN_MAX - 1)] === network
  }

  #networkOf({ peerAddress, peerFamily, protocol }: Query): number {
    const bits = peerFamily === 1 ? IPV4_BITS : IPV6_BITS
    return this.#hash.of(peerAddress, bits, (protocol << 8) | peerFamily)
  }

  #allOf({ peerAddress, protocol }: Query): number {
    return this.#hash.of(peerAddress, 0, protocol << 8)
  }
}
