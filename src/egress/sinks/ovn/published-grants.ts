import { printAddress, scanAddress } from '../../../dns/text/address.ts'
import type { AddressRules, Denial } from '../../learned/address-rules.ts'

/** A name and its addresses as a policy object publishes them: it decides how long they are valid. */
interface PublishedName {
  readonly dnsName: string
  readonly ips: readonly string[]
}

const MAPPED = '::ffff:'

/** What is granted of an object. */
interface PublishedGrants {
  /** In canonical form, sorted. */
  readonly addresses: readonly string[]
  /** Addresses that a rule denies. */
  readonly denied: ReadonlyMap<string, Denial>
}

/**
 * Returns the union of the addresses of all names, without those that a rule denies and without
 * invalid ones. IPv4-mapped IPv6 addresses become IPv4 addresses.
 */
export function grantsOfPublished(
  names: readonly PublishedName[],
  rules: AddressRules,
): PublishedGrants {
  const found = new Set<string>()
  const denied = new Map<string, Denial>()
  for (const ip of names.flatMap(({ ips }) => ips)) {
    const address = canonicalAddress(ip)
    if (address === '') continue
    const denial = rules.denialOf(address)
    if (denial === undefined) found.add(address)
    else denied.set(address, denial)
  }
  return { addresses: [...found].sort(), denied }
}

/** Returns '' for an invalid address. */
function canonicalAddress(text: string): string {
  const address = scanAddress(text)
  if (address === undefined) return ''
  const printed = printAddress(address.bytes, address.family)
  return printed.startsWith(MAPPED) && printed.includes('.')
    ? printed.slice(MAPPED.length)
    : printed
}
