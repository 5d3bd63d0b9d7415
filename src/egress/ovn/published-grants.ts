import { type AddressFamily, printAddress, scanAddress } from '../../dns/text/address.ts'
import type { AddressRules, Denial } from '../names/address-rules.ts'
import type { Grant, GrantSet } from '../sinks/grants.ts'

/** A name and its addresses as a policy object publishes them: it decides how long they are valid. */
export interface PublishedName {
  readonly dnsName: string
  readonly ips: readonly string[]
}

const MAPPED = '::ffff:'

/** What is granted of an object. */
export interface PublishedGrants {
  readonly grants: GrantSet
  /** Addresses that a rule denies. */
  readonly denied: ReadonlyMap<string, Denial>
}

/**
 * Returns the union of the addresses of all names, without those that a rule denies and without
 * invalid ones. IPv4-mapped IPv6 addresses become IPv4 addresses. The grants never end.
 */
export function grantsOfPublished(
  names: readonly PublishedName[],
  rules: AddressRules,
): PublishedGrants {
  const found = new Map<string, Set<string>>()
  const denied = new Map<string, Denial>()
  for (const { dnsName, ips } of names) {
    for (const ip of ips) {
      const address = canonicalAddress(ip)
      if (address === '') continue
      const denial = rules.denialOf(address)
      if (denial !== undefined) {
        denied.set(address, denial)
        continue
      }
      const known = found.get(address)
      if (known === undefined) found.set(address, new Set([dnsName]))
      else known.add(dnsName)
    }
  }
  const addresses = [...found.keys()].sort()
  const grants = new Map(
    addresses.map((address) => {
      const family: AddressFamily = address.includes(':') ? 2 : 1
      const names = [...found.get(address)!].sort()
      const grant: Grant = { family, address, untilMs: Number.POSITIVE_INFINITY, names }
      return [address, grant]
    }),
  )
  return { grants, denied }
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
