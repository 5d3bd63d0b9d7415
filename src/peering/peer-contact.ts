import type { Clock } from '../base/clock.ts'
import { writeMoment } from '../base/moment.ts'
import type { Logger } from '../base/telemetry/log.ts'

/** Minimum time between two log lines about hosts that can't be queried. */
const HOST_FAULT_MS = 10_000

interface PeerContactParts {
  /** Address of the peer. */
  readonly peer: string
  readonly log: Logger
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
}

/** When a peer answered last, and what is wrong with it now. Times are in milliseconds. */
export class PeerContact {
  readonly #parts: PeerContactParts
  /** The peer has answered since this process started to query it. */
  #hasAnswered = false
  #seenMs = Number.NEGATIVE_INFINITY
  #seenTimeMs = 0
  #answerMs = Number.NEGATIVE_INFINITY
  #error = ''
  #hostError = ''
  #hostFaultMs = Number.NEGATIVE_INFINITY
  #failures = 0

  constructor(parts: PeerContactParts) {
    this.#parts = parts
  }

  /** When the peer last confirmed its data, monotonic; -Infinity = never. */
  get seenMs(): number {
    return this.#seenMs
  }

  /** The same since the epoch, by the wall clock at that time; 0 = never. */
  get seenTimeMs(): number {
    return this.#seenTimeMs
  }

  /**
   * When the peer last answered anything, monotonic. A long transfer confirms the data only at its end, but meanwhile
   * the peer is not silent.
   */
  get answerMs(): number {
    return Math.max(this.#answerMs, this.#seenMs)
  }

  get isUp(): boolean {
    return this.#hasAnswered && this.#error === '' && this.#hostError === ''
  }

  /** Why its zone is not known; '' = it is. */
  get error(): string {
    return this.#error
  }

  /** Error of queries for single hosts while queries for its serial succeed; '' = none. */
  get hostError(): string {
    return this.#hostError
  }

  /** Failed attempts since the start. */
  get failures(): number {
    return this.#failures
  }

  /** Notes when an earlier process saw it. */
  recall(seenMs: number): void {
    this.#seenMs = seenMs
    this.#seenTimeMs = writeMoment(seenMs, this.#parts.clock)
  }

  noteAnswer(): void {
    this.#answerMs = this.#parts.clock.monotonic()
  }

  /** It confirmed its data, or sent new data. */
  confirm(): void {
    const { peer, log, clock } = this.#parts
    if (this.#error !== '') log.info(`peer ${peer} answers again`, 'peer-answers', { peer })
    this.#error = ''
    this.#hasAnswered = true
    this.#seenMs = clock.monotonic()
    this.#seenTimeMs = clock.now()
  }

  /** `kept`: number of its endpoints that are kept meanwhile. */
  fail(reason: string, kept: number): void {
    this.#failures++
    if (reason === this.#error) return
    this.#error = reason
    const { peer, log } = this.#parts
    log.warning(`peer ${peer}: ${reason}; its ${kept} endpoints are kept`, 'peer-failed', {
      peer,
      reason,
    })
  }

  /** Notes the result of a query for one host. `fault`: '' = it answered. */
  noteHost(fault: string): void {
    if (fault !== '') this.#failures++
    const { peer, log, clock } = this.#parts
    const nowMs = clock.monotonic()
    const isDue = nowMs - this.#hostFaultMs >= HOST_FAULT_MS
    if (fault !== '' && fault !== this.#hostError && isDue) {
      this.#hostFaultMs = nowMs
      log.warning(`peer ${peer}: query for a host failed: ${fault}`, 'peer-host-failed')
    }
    this.#hostError = fault
  }
}
