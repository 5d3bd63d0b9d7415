import { assert } from '../base/assert.ts'
import { type Cidr, scanCidr } from '../dns/text/address.ts'

/**
 * Prefixes without a location: private, local and documentation prefixes (the prefixes in the IANA
 * IPv4 and IPv6 Special-Purpose Address Registries that are not globally reachable).
 */
export const SPECIAL_PREFIXES: readonly Cidr[] = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16'],
  ...['172.16.0.0/12', '192.0.2.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24'],
  ...['203.0.113.0/24', '240.0.0.0/4', '::1/128', '100::/64', '2001:db8::/32', 'fc00::/7'],
  'fe80::/10',
].map((text) => {
  const cidr = scanCidr(text)
  assert(cidr !== undefined, `${text} is a prefix`)
  return cidr
})
