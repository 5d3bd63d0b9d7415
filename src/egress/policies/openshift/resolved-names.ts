import { printRcode, Rcode } from '../../../dns/iana/index.ts'
import { SAME_LOOKUP_MS } from './lookup-time.ts'

/** An address of a name in the status of a DNSNameResolver. Times in milliseconds since 1970. */
export interface ResolvedAddress {
  readonly ip: string
  readonly ttlSeconds: number
  readonly lookupMs: number
}

/** The condition `Degraded` of a name. */
export interface Degraded {
  readonly isDegraded: boolean
  /** The rcode of the last lookup: `NOERROR`, `NXDOMAIN`. */
  readonly reason: string
  /** When `isDegraded` or `reason` changed last. */
  readonly sinceMs: number
}

/** One item of `status.resolvedNames`. */
export interface ResolvedName {
  /** Lower case, with the final dot. */
  readonly dnsName: string
  readonly failures: number
  readonly addresses: readonly ResolvedAddress[]
  readonly degraded: Degraded | undefined
  /** Conditions of other types, as another writer made them. */
  readonly otherConditions?: readonly object[]
}

/** What a reply says about a name. */
export interface Lookup {
  /** As in `ResolvedName`; a query for a wildcard itself has its `*.`. */
  readonly dnsName: string
  readonly rcode: number
  /** Addresses of the answer section, each with its own TTL. */
  readonly addresses: readonly { readonly ip: string; readonly ttlSeconds: number }[]
  readonly nowMs: number
}

export interface UpdateLimits {
  /** TTL in the place of 0, and of addresses that are kept after a failed lookup. */
  readonly minTtlSeconds: number
  /** Failures in a row after which a name whose addresses have expired is removed. */
  readonly failureThreshold: number
}

export const DEFAULT_LIMITS: UpdateLimits = { minTtlSeconds: 5, failureThreshold: 5 }

/**
 * Returns the resolved names of the object `specName` after a lookup; the same array if nothing
 * changes that is worth a write. The rules are those of CoreDNS's plugin `ocp_dnsnameresolver`, which
 * finds failures by the status of its next plugin; here the rcode of the message counts.
 *
 *     addresses    each is added or renewed, none is removed: resolvers give parts of a set
 *     NODATA       no change
 *     failure      addresses at their end live on for the minimum TTL; after too many failures, they
 *                  no longer do, and once all have expired, the name is removed
 *
 * A name below a wildcard has no entry of its own while the wildcard's entry says the same. What
 * another writer found after `lookup.nowMs` is kept.
 */
export function updateResolvedNames(
  names: readonly ResolvedName[],
  specName: string,
  lookup: Lookup,
  limits: UpdateLimits = DEFAULT_LIMITS,
): readonly ResolvedName[] {
  if (lookup.rcode !== Rcode.NOERROR) return withFailure(names, lookup, limits)
  if (lookup.addresses.length === 0) return names
  const found = renewed(lookup, limits)
  const own = names.find(({ dnsName }) => dnsName === lookup.dnsName)
  const isWildcard = lookup.dnsName === specName && specName.startsWith('*.')
  if (own === undefined && !isWildcard && isCovered(found, wildcardOf(names, specName)))
    return names
  const next = own === undefined ? fresh(lookup, found) : merged(own, found, lookup.nowMs)
  if (!isWildcard) return next === own ? names : replaced(names, next)
  const others = names.filter(({ dnsName }) => dnsName !== specName)
  const kept = others.filter((other) => !isCoveredBy(other, next))
  return next === own && kept.length === others.length ? names : [next, ...kept]
}

/** True if a lookup at `nowMs` with `ttlSeconds` leads to the next lookup at the same time. */
export function isSameLookup(address: ResolvedAddress, nowMs: number, ttlSeconds: number): boolean {
  return Math.abs(endMs(address) - (nowMs + ttlSeconds * 1000)) <= SAME_LOOKUP_MS
}

function endMs({ lookupMs, ttlSeconds }: ResolvedAddress): number {
  return lookupMs + ttlSeconds * 1000
}

function renewed({ addresses, nowMs }: Lookup, limits: UpdateLimits): readonly ResolvedAddress[] {
  return addresses.map(({ ip, ttlSeconds }) => {
    return { ip, ttlSeconds: ttlSeconds === 0 ? limits.minTtlSeconds : ttlSeconds, lookupMs: nowMs }
  })
}

function wildcardOf(names: readonly ResolvedName[], specName: string): ResolvedName | undefined {
  return specName.startsWith('*.') ? names.find(({ dnsName }) => dnsName === specName) : undefined
}

/** True if the wildcard has exactly these addresses, with the same next lookup. */
function isCovered(found: readonly ResolvedAddress[], wildcard: ResolvedName | undefined): boolean {
  const ips = new Set(found.map(({ ip }) => ip))
  return wildcard?.addresses.length === ips.size && areIn(found, wildcard)
}

/** True if the wildcard has all addresses of the name, with the same next lookup. */
function isCoveredBy({ addresses }: ResolvedName, wildcard: ResolvedName): boolean {
  return areIn(addresses, wildcard)
}

function areIn(addresses: readonly ResolvedAddress[], wildcard: ResolvedName): boolean {
  return addresses.every(({ ip, lookupMs, ttlSeconds }) => {
    const same = wildcard.addresses.find((other) => other.ip === ip)
    return same !== undefined && isSameLookup(same, lookupMs, ttlSeconds)
  })
}

function fresh({ dnsName, nowMs }: Lookup, found: readonly ResolvedAddress[]): ResolvedName {
  const addresses = [...new Map(found.map((address) => [address.ip, address])).values()]
  return { dnsName, failures: 0, addresses, degraded: healthy(undefined, nowMs) }
}

/** Returns `own` itself if only the count of failures would change. */
function merged(own: ResolvedName, found: readonly ResolvedAddress[], nowMs: number): ResolvedName {
  const byIp = new Map(own.addresses.map((address) => [address.ip, address]))
  let isChanged = own.degraded?.isDegraded !== false
  for (const address of found) {
    const known = byIp.get(address.ip)
    if (known !== undefined && isSameLookup(known, nowMs, address.ttlSeconds)) continue
    if (known !== undefined && known.lookupMs > nowMs) continue
    byIp.set(address.ip, address)
    isChanged = true
  }
  if (!isChanged) return own
  const degraded = healthy(own.degraded, nowMs)
  return { ...own, failures: 0, addresses: [...byIp.values()], degraded }
}

function healthy(before: Degraded | undefined, nowMs: number): Degraded {
  return condition(before, false, Rcode.NOERROR, nowMs)
}

function condition(
  before: Degraded | undefined,
  isDegraded: boolean,
  rcode: number,
  nowMs: number,
): Degraded {
  const reason = printRcode(rcode)
  if (before?.isDegraded === isDegraded && before.reason === reason) return before
  return { isDegraded, reason, sinceMs: nowMs }
}

function replaced(names: readonly ResolvedName[], next: ResolvedName): readonly ResolvedName[] {
  const index = names.findIndex(({ dnsName }) => dnsName === next.dnsName)
  return index === -1 ? [...names, next] : names.with(index, next)
}

function withFailure(
  names: readonly ResolvedName[],
  { dnsName, rcode, nowMs }: Lookup,
  { minTtlSeconds, failureThreshold }: UpdateLimits,
): readonly ResolvedName[] {
  const own = names.find((name) => name.dnsName === dnsName)
  if (own === undefined || own.addresses.some(({ lookupMs }) => lookupMs > nowMs)) return names
  const degraded = condition(own.degraded, true, rcode, nowMs)
  if (own.failures >= failureThreshold) {
    const isExpired = own.addresses.every((address) => endMs(address) <= nowMs)
    if (isExpired) return names.filter((name) => name !== own)
    // Further failures are not counted, so that queries for a dead name cause no endless writes.
    const isKnown = own.failures > failureThreshold && degraded === own.degraded
    return isKnown ? names : replaced(names, { ...own, failures: failureThreshold + 1, degraded })
  }
  const addresses = own.addresses.map((address) => {
    if (endMs(address) - nowMs > SAME_LOOKUP_MS) return address
    return { ...address, ttlSeconds: minTtlSeconds, lookupMs: nowMs }
  })
  return replaced(names, { ...own, failures: own.failures + 1, addresses, degraded })
}
