import { copyOctets } from '../../base/octets.ts'
import type { LineWriter } from '../../base/telemetry/lines.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { HEAD, ruleOfHead } from './entry.ts'
import type { LineFormat } from './format.ts'
import * as memory from './memory.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { entryWords, textOctets } = memory

/** Prints entries of this thread, each with the format of its rule. */
export class EntryPrinter {
  readonly #formats: readonly LineFormat[]
  readonly #lines: LineWriter

  /** `formats`: by rule. */
  constructor(formats: readonly LineFormat[], lines: LineWriter) {
    this.#formats = formats
    this.#lines = lines
  }

  /** Prints the entry at the start of the entry memory. `tx`: its transaction, for metadata. @hot */
  print(tx: Transaction): void {
    const format = this.#formats[ruleOfHead(entryWords[HEAD]!)]!
    format.readTime()
    const octets = format.print(0, 0, tx)
    const at = this.#lines.begin(octets)
    if (at === -1) return
    copyOctets(textOctets, 0, this.#lines.octets, at, octets)
    this.#lines.end(at + octets)
  }
}
