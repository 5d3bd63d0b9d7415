import { RRType } from '../../dns/iana/types.ts'
import { equalNames, isSubdomain, parentName, printName } from '../../dns/name/name.ts'
import { type Address, isInNetwork, scanAddress, scanCidr } from '../../dns/text/address.ts'
import type { Endpoint } from '../../records/dns-record.ts'
import type { BuildReport, Contribution, OwnerSet } from './owner-set.ts'

export const NO_REPORT: BuildReport = { dropped() {}, kept() {} }
/** Addresses that only this host or its link reaches: unspecified, loopback, link-local. */
const LOCAL_NETWORKS = [
  ...['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '::/127', 'fe80::/10'],
].map((text) => scanCidr(text)!)

/** Returns the addresses of `hosts`, on which a block listens, that other hosts can reach. */
export function reachableAddresses(hosts: readonly string[]): Address[] {
  return hosts
    .map((host) => scanAddress(host))
    .filter((address) => address !== undefined)
    .filter(({ family, bytes }) => {
      return !LOCAL_NETWORKS.some((net) => net.family === family && isInNetwork(bytes, net))
    })
}

/** Returns what a zone serves of its default name server at `owner`, beside `contributions`. */
export function defaultsAt(
  owner: Uint8Array,
  isApex: boolean,
  contributions: readonly Contribution[],
  { defaultNs, defaultAddresses = [] }: DefaultServer,
): readonly Endpoint[] {
  const has = (isWanted: (type: number) => boolean): boolean =>
    contributions.some(({ endpoint }) => isWanted(endpoint.type))
  const ns = isApex && !has((type) => type === RRType.NS) ? [defaultNs] : []
  const isTaken = has((type) => type === RRType.CNAME || isAddress(type))
  return isTaken ? ns : [...ns, ...defaultAddresses.filter((one) => equalNames(one.owner, owner))]
}

interface DefaultServer {
  readonly defaultNs: Endpoint
  readonly defaultAddresses?: readonly Endpoint[] | undefined
}

/** See `RecordZone.explain`. */
interface SetsOfOwner {
  explain(owner: Uint8Array, report: BuildReport): OwnerSet[]
}

/**
 * Returns a warning for each name server of a zone that is in the zone and has no address there, so that resolvers do
 * not find it. `zones`: all apexes of the source; a name below another one is not of this zone.
 */
export function findLameServers(
  apex: Uint8Array,
  zone: SetsOfOwner,
  zones: readonly Uint8Array[],
): string[] {
  const servers = zone.explain(apex, NO_REPORT).find(({ type }) => type === RRType.NS)?.rdata ?? []
  return servers
    .filter((name) => isSubdomain(name, apex) && !isBelowAnother(name, apex, zones))
    .filter((name) => !zone.explain(name, NO_REPORT).some(({ type }) => isAddress(type)))
    .map((name) => {
      const wildcard = wildcardOf(name, apex, zone)
      const effect = wildcard === undefined ? '' : `; clients get the addresses of ${wildcard}`
      const server = printName(name)
      return /* warning */ `zone ${printName(apex)}: name server ${server} has no address${effect}; add nameserver ${server} ADDRESS to kuadrant`
    })
}

function isBelowAnother(name: Uint8Array, apex: Uint8Array, zones: readonly Uint8Array[]): boolean {
  return zones.some((other) => other.length > apex.length && isSubdomain(name, other))
}

/** Returns the wildcard that answers in place of a name without data. */
function wildcardOf(name: Uint8Array, apex: Uint8Array, zone: SetsOfOwner): string | undefined {
  if (zone.explain(name, NO_REPORT).length > 0) return undefined
  for (let at = name; at.length > apex.length; ) {
    at = parentName(at)
    const wildcard = Uint8Array.of(1, 0x2a, ...at)
    if (zone.explain(wildcard, NO_REPORT).length > 0) return printName(wildcard)
    if (zone.explain(at, NO_REPORT).length > 0) return undefined
  }
  return undefined
}

function isAddress(type: number): boolean {
  return type === RRType.A || type === RRType.AAAA
}
