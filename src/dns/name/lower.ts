/**
 * Lower case of every octet by DNS rules: A-Z only, no locale (RFC 4343). Length octets of labels
 * (0..63) map to themselves, so a whole wire name can be converted.
 */
export const LOWER: Uint8Array = Uint8Array.from({ length: 256 }, (_, octet) =>
  octet >= 0x41 && octet <= 0x5a ? octet + 0x20 : octet,
)

/** Converts four octets to lower case at once, as `LOWER` does one by one. @hot */
export function lowerWord(word: number): number {
  const low = word & 0x7f7f7f7f
  // The highest bit of each octet is set if the octet is at least `A`, not above `Z` and not above
  // 127.
  const isLetter = (low + 0x3f3f3f3f) & ~(low + 0x25252525) & ~word & 0x80808080
  return word | (isLetter >>> 2)
}
