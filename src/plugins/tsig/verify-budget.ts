import { randomFillSync } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { createRateTable, Debit, RateTable, rateOf, ticksOf } from '../../base/rate-table.ts'
import { TABULATION_WORDS, TabulationHash } from '../../base/tabulation-hash.ts'
import type { Query } from '../../dns/message/query.ts'

/**
 * Failed verifications per second: of a network without a success, of a network with one, and of
 * all networks without one.
 */
const UNKNOWN_PER_SECOND = 20
const KNOWN_PER_SECOND = 500
const ALL_PER_SECOND = 1000

// No debt: a client whose address is forged has part of its signatures verified during the flood,
// and all of them right after it.
const UNKNOWN = rateOf(UNKNOWN_PER_SECOND, 0)
const KNOWN = rateOf(KNOWN_PER_SECOND, 0)
const ALL = rateOf(ALL_PER_SECOND, 0)

const ACCOUNTS = 4096
/** Maximum of networks that are stored after a success; a power of two. */
const KNOWN_MAX = 1024
const IPV4_BITS = 24
const IPV6_BITS = 56

/**
 * Limits the time that MACs of wrong signatures take in one thread, per network and in total. A MAC
 * costs some 10 µs, so forged signatures take at most about one per cent of a CPU. TCP, where
 * addresses are real, has accounts separate from UDP.
 */
export class VerifyBudget {
  readonly #clock: Clock
  readonly #hash = new TabulationHash(randomFillSync(new Int32Array(TABULATION_WORDS)))
  readonly #table = new RateTable(createRateTable(ACCOUNTS))
  /** By the low bits of a network's hash: the hash, if one of its signatures was valid. */
  readonly #known = new Int32Array(KNOWN_MAX)

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Returns true if the signature of the query may be verified. If the signature is valid, call
   * `succeed` afterwards.
   */
  take(query: Query): boolean {
    const nowTicks = ticksOf(this.#clock.monotonic())
    const network = this.#networkOf(query)
    if (this.#isKnown(network)) {
      return this.#table.debit(network, nowTicks, KNOWN, 0) === Debit.Paid
    }
    if (this.#table.debit(network, nowTicks, UNKNOWN, 0) !== Debit.Paid) return false
    return this.#table.debit(this.#allOf(query), nowTicks, ALL, 0) === Debit.Paid
  }

  /** Refunds the cost of a valid signature. */
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
