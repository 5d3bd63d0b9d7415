import { assert } from '../../base/assert.ts'
import { copyOctets } from '../../base/octets.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { type LineWriter, NEWLINE } from '../../telemetry/lines.ts'
import type { LineFormat } from './format.ts'
import * as memory from './memory.ts'
import { HEAD, ruleOfHead, wordsOfHead } from './record.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { recordOctets, recordWords, TEXT_FULL_OCTETS, textOctets } = memory

/** Prints records, each with the format of its rule. */
export class RecordPrinter {
  readonly #formats: readonly LineFormat[]
  readonly #lines: LineWriter

  /** `formats`: by rule. */
  constructor(formats: readonly LineFormat[], lines: LineWriter) {
    this.#formats = formats
    this.#lines = lines
  }

  /** Prints the record at the start of the record memory. `tx`: its transaction, for metadata. @hot */
  print(tx: Transaction): void {
    const octets = this.#formats[ruleOfHead(recordWords[HEAD]!)]!.print(0, 0, tx)
    const at = this.#lines.begin(octets)
    if (at === -1) return
    copyOctets(textOctets, 0, this.#lines.octets, at, octets)
    this.#lines.end(at + octets)
  }

  /** Prints all records of `octets`, which another thread wrote one after the other. */
  printAll(octets: Uint8Array): void {
    assert(octets.length <= recordOctets.length, 'records fit')
    recordOctets.set(octets)
    const end = octets.length >> 2
    let to = 0
    for (let at = 0; at < end; ) {
      const head = recordWords[at + HEAD]!
      to = this.#formats[ruleOfHead(head)]!.print(to, at)
      textOctets[to++] = NEWLINE
      if (to >= TEXT_FULL_OCTETS) to = this.#hand(to)
      assert(wordsOfHead(head) > 0, 'a record has a head')
      at += wordsOfHead(head)
    }
    this.#hand(to)
  }

  /** Passes on the lines printed up to `end`. Returns 0, the offset of the next line. */
  #hand(end: number): number {
    if (end > 0) this.#lines.write(textOctets.subarray(0, end))
    return 0
  }
}
