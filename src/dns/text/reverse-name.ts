import { isSubdomain, scanName } from '../name/name.ts'
import type { Address } from './address.ts'

const REVERSE_ROOTS = [scanName('in-addr.arpa.')!, scanName('ip6.arpa.')!]

/** True for in-addr.arpa., ip6.arpa. and zones below them. */
export function isReverseZone(zone: Uint8Array): boolean {
  return REVERSE_ROOTS.some((root) => isSubdomain(zone, root))
}

/** Returns the name of an address in in-addr.arpa or ip6.arpa, lower-case wire form. */
export function reverseName(address: Address): Uint8Array {
  const labels: string[] = []
  for (const octet of address.bytes) {
    if (address.family === 1) labels.unshift(String(octet))
    else labels.unshift((octet & 15).toString(16), (octet >> 4).toString(16))
  }
  return scanName(`${labels.join('.')}.${address.family === 1 ? 'in-addr' : 'ip6'}.arpa.`)!
}
