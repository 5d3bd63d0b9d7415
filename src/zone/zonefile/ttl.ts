/** Maximum of a field of 32 bits. */
const SECONDS_MAX = 0xffffffff

/** Returns the seconds of a unit letter in any case; 0 = not a unit. */
function unitSeconds(octet: number): number {
  switch (octet | 0x20) {
    case 0x73: // s
      return 1
    case 0x6d: // m
      return 60
    case 0x68: // h
      return 3600
    case 0x64: // d
      return 86400
    case 0x77: // w
      return 604800
    default:
      return 0
  }
}

/**
 * Parses the TTL in `input[start..end)`: seconds, or numbers with units that add up, as in `1h30m`.
 * Returns -1 if it is invalid, or has more than 32 bits.
 */
export function scanTtl(input: Uint8Array, start: number, end: number): number {
  if (start >= end) return -1
  let total = 0
  let number = 0
  let digits = 0
  for (let i = start; i < end; i++) {
    const octet = input[i]!
    if (octet >= 0x30 && octet <= 0x39) {
      number = number * 10 + (octet - 0x30)
      digits++
    } else {
      const unit = unitSeconds(octet)
      if (unit === 0 || digits === 0) return -1
      total += number * unit
      number = 0
      digits = 0
    }
    if (number > SECONDS_MAX || total > SECONDS_MAX) return -1
  }
  total += number
  return total <= SECONDS_MAX ? total : -1
}
