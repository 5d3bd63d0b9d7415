import { printTime } from '../../../base/rfc3339.ts'
import { Rcode } from '../../../dns/iana/rcodes.ts'
import { isObject, type JsonValue, textOf } from '../../../kube/api.ts'
import { SAME_LOOKUP_MS, scanTime } from './lookup-time.ts'
import type { NameApi } from './name-api.ts'
import { EGRESS_FIREWALL_DNS_NAMES } from './name-kinds.ts'
import type { Lookup, UpdateLimits } from './resolved-names.ts'

/** The definition's rule for names. */
const NAME = /^(\*\.)?([a-z0-9-]+\.)*[a-z0-9-]+\.$/
/** Octets in the API's storage. */
const ENTRY_OCTETS = 200
const ADDRESS_OCTETS = 48

/** One item of `status.resolvedNames`: all addresses have one time. */
export interface DnsNameEntry {
  /** Lower case, with the final dot. */
  readonly dnsName: string
  readonly ips: readonly string[]
  readonly ttlSeconds: number
  /** Milliseconds since 1970. */
  readonly lookupMs: number
}

/** EgressFirewallDNSName, `dns.openshift.io/v1alpha1`: the first design of DNSNameResolver. */
export const EGRESS_FIREWALL_DNS_NAME: NameApi<DnsNameEntry> = {
  resource: EGRESS_FIREWALL_DNS_NAMES,
  accepts: (dnsName) => NAME.test(dnsName),
  scan: (value) => (Array.isArray(value) ? joined(value.flatMap(scanEntry)) : []),
  print: (entries) => {
    return entries.map(({ dnsName, ips, ttlSeconds, lookupMs }) => {
      return { dnsName, ips, ttl: ttlSeconds, lastLookupTime: printTime(lookupMs) }
    })
  },
  update: updateEntries,
  forEachAddress: (entry, visit) => {
    for (const ip of entry.ips) visit(ip, endMsOf(entry))
  },
  octetsOf: ({ dnsName, ips }) => ENTRY_OCTETS + dnsName.length + ADDRESS_OCTETS * ips.length,
  withoutExpired: (entries, endMs) => entries.filter((entry) => endMsOf(entry) >= endMs),
}

/**
 * Returns the entries after a lookup.
 *
 *     the next lookup is at the same time   the addresses are added
 *     at another time                       they replace those of their family, with the new time
 *     a failure, or NODATA                  no change
 *
 * The design has one TTL for all addresses. As A and AAAA are two lookups, the earlier end counts while
 * the other family is not expired.
 */
function updateEntries(
  entries: readonly DnsNameEntry[],
  specName: string,
  lookup: Lookup,
  limits: UpdateLimits,
): readonly DnsNameEntry[] {
  if (lookup.rcode !== Rcode.NOERROR || lookup.addresses.length === 0) return entries
  const found = foundBy(lookup, limits)
  const own = entries.find(({ dnsName }) => dnsName === lookup.dnsName)
  const isWildcard = lookup.dnsName === specName && specName.startsWith('*.')
  const wildcard = isWildcard ? undefined : entries.find(({ dnsName }) => dnsName === specName)
  if (own === undefined && wildcard !== undefined && isCovered(found, wildcard)) return entries
  const next = own === undefined ? found : merged(own, found)
  if (!isWildcard) {
    if (own === undefined) return [...entries, next]
    return next === own ? entries : entries.with(entries.indexOf(own), next)
  }
  const others = entries.filter((entry) => entry !== own)
  const kept = others.filter((entry) => !isSame(entry, next) || !areIn(entry.ips, next))
  return next === own && kept.length === others.length ? entries : [next, ...kept]
}

function foundBy({ dnsName, addresses, nowMs }: Lookup, limits: UpdateLimits): DnsNameEntry {
  const ttls = addresses.map(({ ttlSeconds }) => ttlSeconds || limits.minTtlSeconds)
  const ips = [...new Set(addresses.map(({ ip }) => ip))]
  return { dnsName, ips, ttlSeconds: Math.min(...ttls), lookupMs: nowMs }
}

/** Returns `own` itself if nothing changes. */
function merged(own: DnsNameEntry, found: DnsNameEntry): DnsNameEntry {
  const isLater = own.lookupMs > found.lookupMs
  if (isSame(own, found) || isLater) {
    const added = found.ips.filter((ip) => !own.ips.includes(ip))
    return added.length === 0 ? own : { ...own, ips: [...own.ips, ...added] }
  }
  const others = own.ips.filter((ip) => !found.ips.some((other) => isIpv6(other) === isIpv6(ip)))
  const isEarlier = others.length > 0 && endMsOf(own) < endMsOf(found)
  const keepsTime = isEarlier && endMsOf(own) > found.lookupMs + SAME_LOOKUP_MS
  const { ttlSeconds, lookupMs } = keepsTime ? own : found
  const next = { dnsName: own.dnsName, ips: [...others, ...found.ips], ttlSeconds, lookupMs }
  const isKnown = keepsTime && areIn(own.ips, next) && areIn(next.ips, own)
  return isKnown ? own : next
}

/** True if the wildcard has the same time, and the same addresses of the families that were found. */
function isCovered(found: DnsNameEntry, wildcard: DnsNameEntry): boolean {
  const ips = wildcard.ips.filter((ip) => found.ips.some((other) => isIpv6(other) === isIpv6(ip)))
  return isSame(found, wildcard) && areIn(found.ips, wildcard) && areIn(ips, found)
}

function areIn(ips: readonly string[], entry: DnsNameEntry): boolean {
  return ips.every((ip) => entry.ips.includes(ip))
}

/** True if the next lookup is due at the same time. */
function isSame(a: DnsNameEntry, b: DnsNameEntry): boolean {
  return Math.abs(endMsOf(a) - endMsOf(b)) <= SAME_LOOKUP_MS
}

function endMsOf({ lookupMs, ttlSeconds }: DnsNameEntry): number {
  return lookupMs + ttlSeconds * 1000
}

function isIpv6(ip: string): boolean {
  return ip.includes(':')
}

function scanEntry(value: JsonValue): DnsNameEntry[] {
  const dnsName = textOf(value, 'dnsName')
  if (!isObject(value) || dnsName === '' || typeof value.ttl !== 'number') return []
  const ips = Array.isArray(value.ips) ? value.ips.filter((ip) => typeof ip === 'string') : []
  const lookupMs = scanTime(textOf(value, 'lastLookupTime'))
  return [{ dnsName: dnsName.toLowerCase(), ips, ttlSeconds: value.ttl, lookupMs }]
}

/**
 * Makes one entry of those whose names differ in case only: it has the addresses of all, and is due
 * when the first of them is.
 */
function joined(entries: readonly DnsNameEntry[]): readonly DnsNameEntry[] {
  const byName = new Map<string, DnsNameEntry>()
  for (const entry of entries) {
    const { dnsName, ips } = entry
    const known = byName.get(dnsName) ?? entry
    const first = endMsOf(entry) < endMsOf(known) ? entry : known
    byName.set(dnsName, { ...first, ips: [...new Set([...known.ips, ...ips])] })
  }
  return [...byName.values()]
}
