import { GATEWAY } from './gateway/gateway-kind.ts'
import type { ObjectKind } from './object-kind.ts'

/** All kinds of objects besides DNSRecord, in the order of the documentation. */
export const OBJECT_KINDS: readonly ObjectKind[] = [GATEWAY]

/** The word of `sources` for DNSRecords. */
export const DNSRECORD_WORD = 'dnsrecord'

/** The words of `sources`. */
export const SOURCE_WORDS: readonly string[] = [
  DNSRECORD_WORD,
  ...OBJECT_KINDS.map(({ word }) => word),
]

/** Returns the kinds with these words, without DNSRecord. */
export function kindsOf(words: readonly string[]): readonly ObjectKind[] {
  return OBJECT_KINDS.filter(({ word }) => words.includes(word))
}
