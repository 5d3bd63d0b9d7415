import type { CounterSlots } from '../../plugin/counter-slots.ts'
import type { QueryTap } from '../../plugin/query-tap.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { EntryWriter } from './entry.ts'
import type { ExtraText } from './extra-text.ts'

/** One `dnstap` line of a server block. */
export interface TapLine {
  readonly writer: EntryWriter
  /** Undefined = the text does not depend on the query. */
  readonly extra: ExtraText | undefined
}

/** Writes an entry of each query for each line. */
export class Tap implements QueryTap {
  readonly #lines: readonly TapLine[]
  readonly #lost: CounterSlots

  /** `lost`: by line, the messages for which there was no room. */
  constructor(lines: readonly TapLine[], lost: CounterSlots) {
    this.#lines = lines
    this.#lost = lost
  }

  /** @hot */
  see(tx: Transaction, octets: number): void {
    const lines = this.#lines
    for (let i = 0; i < lines.length; i++) {
      const { writer, extra } = lines[i]!
      if (writer.write(tx, octets, extra === undefined ? '' : extra.print(tx))) continue
      this.#lost.of(tx)[i]! += octets > 0 ? 2 : 1
    }
  }
}
