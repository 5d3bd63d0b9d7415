/**
 * Writes an address of a packet to 16 octets of `out`, padded with zeros, and returns its family.
 * @hot
 */
export function copyIPv4(octets: Uint8Array, at: number, out: Uint8Array): number {
  out[0] = octets[at]!
  out[1] = octets[at + 1]!
  out[2] = octets[at + 2]!
  out[3] = octets[at + 3]!
  out[4] = out[5] = out[6] = out[7] = 0
  out[8] = out[9] = out[10] = out[11] = 0
  out[12] = out[13] = out[14] = out[15] = 0
  return 1
}

/** As `copyIPv4`. An IPv4-mapped address (RFC 4291 section 2.5.5.2) becomes the IPv4 address. */
export function copyIPv6(octets: Uint8Array, at: number, out: Uint8Array): number {
  let isMapped = octets[at + 10] === 0xff && octets[at + 11] === 0xff
  for (let i = 0; i < 10; i++) if (octets[at + i] !== 0) isMapped = false
  if (isMapped) return copyIPv4(octets, at + 12, out)
  for (let i = 0; i < 16; i++) out[i] = octets[at + i]!
  return 2
}
