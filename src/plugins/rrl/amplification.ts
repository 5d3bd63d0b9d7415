/** The account gains and loses at most this much time: no pause saves up more than one second of octets. */
const CREDIT_MS = 1000
/** Threads add what they counted to the shared account in portions of so much of a second. */
const PORTION_SECONDS = 0.001

/**
 * Limits the octets that replies are longer than their queries, of all clients together: what many forged sources
 * can gain, each below its own limit.
 *
 *     replies ─▶ portion of this thread ─▶ shared: the time until which octets are spent
 *
 * Octets that are not sent count too, so no reply longer than its query is sent while the demand is above the limit.
 */
export class AmplificationLimit {
  /** One word: monotonic milliseconds. Written without locks: a portion can be lost. */
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
