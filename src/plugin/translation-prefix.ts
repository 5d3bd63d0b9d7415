import { key } from '../base/shared-values.ts'
import type { Dispenser } from '../corefile/dispenser.ts'
import { type Cidr, scanCidr } from '../dns/text/address.ts'

/** The lengths that RFC 6052 section 2.2 defines. */
const PREFIX_BITS: readonly number[] = [32, 40, 48, 56, 64, 96]
/** Bits 64 to 71, which are zero in all addresses of a translator. */
const ZERO_OCTET = 8

/** Reads an IPv6 network whose addresses contain IPv4 addresses (RFC 6052). Throws InputError for any other text. */
export function scanTranslationPrefix(d: Dispenser, text: string): Cidr {
  const prefix = scanCidr(text)
  if (prefix === undefined) throw d.error(`invalid CIDR address: ${text}`)
  if (prefix.family !== 2) throw d.error(`prefix ${text} is not an IPv6 network`)
  if (!PREFIX_BITS.includes(prefix.bits)) {
    throw d.error(`invalid prefix length of ${text}; expect ${PREFIX_BITS.join(', ')}`)
  }
  if (prefix.bytes[ZERO_OCTET] === 0) return prefix
  throw d.error(`invalid prefix ${text}: bits 64 to 71 are zero in RFC 6052`)
}

/** The prefix through which clients of a server block reach IPv4 addresses. */
export const NAT64_PREFIX = key<Cidr>('prefix of NAT64')
