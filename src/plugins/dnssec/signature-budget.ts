import { ticksOf } from '../../base/rate-table.ts'
import { TABULATION_WORDS, TabulationHash } from '../../base/tabulation-hash.ts'
import { Protocol, type Query } from '../../dns/message/query.ts'

const TICKS_PER_SECOND = 65_536
const IPV4_BITS = 24
const IPV6_BITS = 56
/** Accounts of client networks. Networks with one account share it. A power of two. */
const ACCOUNTS = 4096
/** One account for UDP, one for all others: clients of those have proved their address. */
const TOTALS = 2

/** Memory that all threads share. */
export interface BudgetMemory {
  readonly accounts: Int32Array
  /** Tables of `TabulationHash`. */
  readonly secret: Int32Array
}

/** `fill`: fills an array with random octets. */
export function createBudgetMemory(fill: (secret: Int32Array) => void): BudgetMemory {
  const octets = (TOTALS + ACCOUNTS) * Int32Array.BYTES_PER_ELEMENT
  const accounts = new Int32Array(new SharedArrayBuffer(octets))
  const secret = new Int32Array(TABULATION_WORDS)
  fill(secret)
  return { accounts, secret }
}

/** Signatures per second. */
export interface BudgetRates {
  /** For all clients over UDP, and as many over the other transports. */
  readonly total: number
  /** For the clients of one network and transport. */
  readonly perNetwork: number
}

/**
 * Limits new signatures, in all threads together. Each account is a leaky bucket of one second (GCRA): the time at
 * which it is empty. A denial costs nothing, so an account also pays at its rate during a flood. Threads write without
 * locks: if two of them change one account at once, a debit is lost.
 */
export class SignatureBudget {
  readonly #totalTicks: number
  readonly #networkTicks: number
  #accounts: Int32Array | undefined = undefined
  #hash: TabulationHash | undefined = undefined
  /** The monotonic clock of each thread starts with the thread. */
  #offsetMs = 0

  constructor({ total, perNetwork }: BudgetRates) {
    this.#totalTicks = Math.floor(TICKS_PER_SECOND / total)
    this.#networkTicks = Math.floor(TICKS_PER_SECOND / perNetwork)
  }

  use({ accounts, secret }: BudgetMemory): void {
    this.#accounts = accounts
    this.#hash = new TabulationHash(secret)
    this.#offsetMs = Number(process.hrtime.bigint()) / 1e6 - performance.now()
  }

  /**
   * Pays for one signature. `nowMs`: monotonic, of this thread. False = the client, or all clients together, have had
   * their share. @hot
   */
  take({ peerAddress, peerFamily, protocol }: Query, nowMs: number): boolean {
    if (this.#accounts === undefined) return true
    const now = ticksOf(nowMs + this.#offsetMs)
    const total = protocol === Protocol.Udp ? 0 : 1
    const bits = peerFamily === 1 ? IPV4_BITS : IPV6_BITS
    const hash = this.#hash!.of(peerAddress, bits, (peerFamily << 1) | total)
    const network = TOTALS + (hash & (ACCOUNTS - 1))
    if (!this.#has(network, now, this.#networkTicks) || !this.#has(total, now, this.#totalTicks)) {
      return false
    }
    this.#debit(network, now, this.#networkTicks)
    this.#debit(total, now, this.#totalTicks)
    return true
  }

  #has(account: number, now: number, ticks: number): boolean {
    return this.#owed(account, now) + ticks <= TICKS_PER_SECOND
  }

  #debit(account: number, now: number, ticks: number): void {
    this.#accounts![account] = (now + this.#owed(account, now) + ticks) | 0
  }

  /** Ticks until the account is empty. A time too far ahead is from the previous cycle of the clock. */
  #owed(account: number, now: number): number {
    const ahead = (this.#accounts![account]! - now) | 0
    return ahead > 0 && ahead <= 2 * TICKS_PER_SECOND ? ahead : 0
  }
}
