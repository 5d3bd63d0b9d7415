/**
 * Lower case of every octet by DNS rules: A-Z only, no locale (RFC 4343). Length octets of labels
 * (0..63) map to themselves, so a whole wire name can be converted.
 */
export const LOWER: Uint8Array = Uint8Array.from({ length: 256 }, (_, octet) =>
  octet >= 0x41 && octet <= 0x5a ? octet + 0x20 : octet,
)
