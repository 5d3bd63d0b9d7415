/** The word of `sources` for DNSRecords. */
export const DNSRECORD_WORD = 'dnsrecord'

/** The words of `sources`: DNSRECORD_WORD, and those of OBJECT_KINDS. Flags and help need no more of the kinds. */
export const SOURCE_WORDS: readonly string[] = [
  DNSRECORD_WORD,
  'dnsendpoint',
  'gateway',
  'service',
  'ingress',
]
