import type { Clock } from '../../../base/clock.ts'
import type { OctetChannel } from '../../../base/telemetry/octet-channel.ts'
import type { Transaction } from '../../../plugin/transaction.ts'
import { composeEntry, ENTRY_WORDS_MAX } from '../entry.ts'

/**
 * Sends log entries to the control thread, which prints them (`printEntries`). So a data thread
 * writes some 60 octets per query instead of a line.
 */
export class EntrySender {
  readonly #out: OctetChannel
  readonly #words: Int32Array
  readonly #clock: Clock

  constructor(out: OctetChannel, clock: Clock) {
    const { buffer, byteOffset, length } = out.octets
    this.#out = out
    this.#words = new Int32Array(buffer, byteOffset, length >> 2)
    this.#clock = clock
  }

  /** Parameters as of `composeEntry`. @hot */
  send(tx: Transaction, status: number, rule: number, hasDestination: boolean): void {
    const at = this.#out.begin(ENTRY_WORDS_MAX << 2)
    if (at === -1) return
    const words = this.#words
    const end = composeEntry(words, at >> 2, tx, status, rule, hasDestination, this.#clock)
    this.#out.end(end << 2)
  }
}
