import { OctetReader } from './octets.ts'

/** Keys of hints (RFC 9460 section 14.3.2), with the octets of their addresses. */
const HINT_OCTETS: ReadonlyMap<number, 4 | 16> = new Map([
  [4, 4],
  [6, 16],
])

/**
 * The addresses in `ipv4hint` and `ipv6hint` of uncompressed rdata of SVCB or HTTPS (RFC 9460 section 7.3), of 4 or
 * 16 octets each. None if the rdata is invalid.
 */
export function svcHints(rdata: Uint8Array): readonly Uint8Array[] {
  const input = new OctetReader(rdata, 0, rdata.length)
  const hints: Uint8Array[] = []
  if (input.uint(2) < 0 || !skipName(input)) return []
  while (input.remaining > 0) {
    const key = input.uint(2)
    const length = input.uint(2)
    const value = length < 0 ? undefined : input.take(length)
    if (value === undefined) return []
    const octets = HINT_OCTETS.get(key)
    if (octets === undefined) continue
    if (value.length % octets !== 0) return []
    for (let at = 0; at < value.length; at += octets) hints.push(value.subarray(at, at + octets))
  }
  return hints
}

/** Moves to the end of an uncompressed name. */
function skipName(input: OctetReader): boolean {
  for (;;) {
    const octets = input.uint(1)
    if (octets === 0) return true
    if (octets < 0 || octets > 63 || input.take(octets) === undefined) return false
  }
}
