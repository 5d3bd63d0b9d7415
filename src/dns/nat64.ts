import type { Cidr } from './text/address.ts'

const IPV4_OCTETS = 4
/** The octet of an address that stays zero: bits 64 to 71 (RFC 6052 section 2.2). */
const ZERO_OCTET = 8

/**
 * Writes the IPv6 address of `prefix` that contains the IPv4 address at `from[offset]` to `to[at]`
 * (RFC 6052 section 2.2). `to` has zeros there.
 */
export function embedIPv4(
  prefix: Cidr,
  from: Uint8Array,
  offset: number,
  to: Uint8Array,
  at: number,
): void {
  const prefixOctets = prefix.bits / 8
  for (let i = 0; i < prefixOctets; i++) to[at + i] = prefix.bytes[i]!
  let i = prefixOctets
  for (let octet = 0; octet < IPV4_OCTETS; octet++, i++) {
    if (i === ZERO_OCTET) i++
    to[at + i] = from[offset + octet]!
  }
}

/** Returns the IPv4 address in an IPv6 address of `prefix` (RFC 6052 section 2.2). */
export function embeddedIPv4(prefix: Cidr, address: Uint8Array): Uint8Array {
  const octets = new Uint8Array(IPV4_OCTETS)
  let i = prefix.bits / 8
  for (let octet = 0; octet < IPV4_OCTETS; octet++, i++) {
    if (i === ZERO_OCTET) i++
    octets[octet] = address[i]!
  }
  return octets
}

/** True if `address` contains an IPv4 address by `prefix`: it is in the prefix, and bits 64 to 71 are zero. */
export function isInPrefix(prefix: Cidr, address: Uint8Array): boolean {
  const prefixOctets = prefix.bits / 8
  for (let i = 0; i < prefixOctets; i++) if (address[i] !== prefix.bytes[i]) return false
  return address[ZERO_OCTET] === 0
}
