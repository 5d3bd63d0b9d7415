import { type AddressFamily, printAddress, scanAddress } from '../../dns/text/address.ts'
import type { AddressRules } from '../names/address-rules.ts'
import type { Grant, GrantSet } from '../sinks/grants.ts'

/** A name and its addresses as a policy object publishes them: it decides how long they are valid. */
export interface PublishedName {
  readonly dnsName: string
  readonly ips: readonly string[]
}

const MAPPED = '::ffff:'

/**
 * Returns the union of the addresses of all names, without those that a rule denies and without
 * invalid ones. IPv4-mapped IPv6 addresses become IPv4 addresses. The grants never end.
 */
export function grantsOfPublished(names: readonly PublishedName[], rules: AddressRules): GrantSet {
  const found = new Map<string, Set<string>>()
  for (const { dnsName, ips } of names) {
    for (const ip of ips) {
      const address = canonicalAddress(ip)
      if (address === '' || rules.denialOf(address) !== undefined) continue
      const known = found.get(address)
      if (known === undefined) found.set(address, new Set([dnsName]))
      else known.add(dnsName)
    }
  }
  const addresses = [...found.keys()].sort()
  return new Map(
    addresses.map((address) => {
      const family: AddressFamily = address.includes(':') ? 2 : 1
      const names = [...found.get(address)!].sort()
      const grant: Grant = { family, address, untilMs: Number.POSITIVE_INFINITY, names }
      return [address, grant]
    }),
  )
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
