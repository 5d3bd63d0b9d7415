import type { Clock } from '../clock.ts'
import type { Logger } from './log.ts'

/** Least time between two lines. */
const REFUSAL_LINE_MS = 10_000

/** Logs refused packets in a bounded number of lines, because senders can be forged. */
export class RefusalLog {
  readonly #log: Logger
  readonly #clock: Clock
  /** `NOTIFY of 192.0.2.1 is refused` */
  readonly #print: (host: string) => string
  #lineMs = Number.NEGATIVE_INFINITY
  #unreported = 0

  constructor(log: Logger, clock: Clock, print: (host: string) => string) {
    this.#log = log
    this.#clock = clock
    this.#print = print
  }

  note(host: string, reason: string): void {
    const nowMs = this.#clock.monotonic()
    if (nowMs - this.#lineMs < REFUSAL_LINE_MS) {
      this.#unreported++
      return
    }
    const more =
      this.#unreported === 0 ? '' : `; ${this.#unreported} others since the last such line`
    this.#lineMs = nowMs
    this.#unreported = 0
    this.#log.warning(`${this.#print(host)}: ${reason}${more}`, 'packet-refused')
  }
}
