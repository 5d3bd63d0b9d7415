import { assert } from '../../../base/assert.ts'
import { type LineWriter, NEWLINE } from '../../../base/telemetry/lines.ts'
import { HEAD, ruleOfHead, wordsOfHead } from '../entry.ts'
import type { LineFormat } from '../format.ts'
import * as memory from '../memory.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { entryOctets, entryWords, TEXT_FULL_OCTETS, textOctets } = memory

/**
 * Prints all entries of `octets`, which an `EntrySender` of another thread wrote one after the
 * other. `formats`: by rule.
 */
export function printEntries(
  octets: Uint8Array,
  formats: readonly LineFormat[],
  lines: LineWriter,
): void {
  assert(octets.length <= entryOctets.length, 'entries fit')
  entryOctets.set(octets)
  for (const format of formats) format.readTime()
  const end = octets.length >> 2
  let to = 0
  for (let at = 0; at < end; ) {
    const head = entryWords[at + HEAD]!
    to = formats[ruleOfHead(head)]!.print(to, at)
    textOctets[to++] = NEWLINE
    if (to >= TEXT_FULL_OCTETS) {
      lines.write(textOctets.subarray(0, to))
      to = 0
    }
    assert(wordsOfHead(head) > 0, 'an entry has a head')
    at += wordsOfHead(head)
  }
  if (to > 0) lines.write(textOctets.subarray(0, to))
}
