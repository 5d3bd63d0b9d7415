/** Most credit and most debt of the account: the octets of one second. */
const CREDIT_MS = 1000
/** A thread adds its octets to the shared account in portions of this part of a second. */
const PORTION_SECONDS = 0.001

/**
 * Limits the octets by which the replies to all clients together exceed their queries. Many forged sources, each below
 * its own limit, cannot gain more.
 *
 *     replies ─▶ portion of this thread ─▶ shared: the time until which octets are spent
 *
 * Octets that are not sent count too, so no reply longer than its query is sent while the demand is above the limit.
 */
export class AmplificationLimit {
  /** Monotonic milliseconds. Written without locks: a portion can be lost. */
  readonly #shared: Float64Array
  readonly #octetsPerMs: number
  readonly #portionOctets: number
  #octets = 0
  #isSpent = false

  constructor(shared: Float64Array, octetsPerSecond: number) {
    this.#shared = shared
    this.#octetsPerMs = octetsPerSecond / 1000
    this.#portionOctets = octetsPerSecond * PORTION_SECONDS
  }

  /** Debits `octets`; true = they exceed the limit. @hot */
  exceeds(octets: number, nowMs: number): boolean {
    this.#octets += octets
    if (this.#octets >= this.#portionOctets || this.#isSpent) this.#settle(nowMs)
    return this.#isSpent
  }

  #settle(nowMs: number): void {
    const fromMs = Math.max(this.#shared[0]!, nowMs - CREDIT_MS)
    const untilMs = fromMs + this.#octets / this.#octetsPerMs
    this.#octets = 0
    this.#shared[0] = Math.min(untilMs, nowMs + CREDIT_MS)
    this.#isSpent = untilMs > nowMs
  }
}
