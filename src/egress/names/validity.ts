import type { AddressFact, Outcomes } from './facts.ts'

/**
 * A policy's own rule: how long an address may be used, in monotonic milliseconds. Pure; the facts
 * stay the same for all policies.
 */
export type Validity = (fact: AddressFact, outcomes: Outcomes) => number

export interface DnsNameResolverRule {
  /** Counts in place of a TTL of 0, and after a failure. */
  readonly minTtlSeconds: number
  /** Number of consecutive failures that extend the validity. */
  readonly failureThreshold: number
}

/** Time from the end of the validity to the removal of an address by the DNSNameResolver controller. */
export const REMOVAL_GRACE_MS = 5000

/**
 * DNSNameResolver: the TTL after the newest answer. A failure that comes shortly before the end, or
 * in the grace after it, extends the validity by the minimum TTL; so does each further failure that
 * comes in time, up to the threshold. The removal follows after REMOVAL_GRACE_MS.
 */
export function dnsNameResolverValidity(rule: DnsNameResolverRule): Validity {
  const extensionMs = rule.minTtlSeconds * 1000
  return ({ family, lastSeenMs, ttlSeconds }, outcomes) => {
    const endMs = lastSeenMs + (ttlSeconds === 0 ? rule.minTtlSeconds : ttlSeconds) * 1000
    const { failures } = outcomes[family]
    if (failures === undefined || failures.count > rule.failureThreshold) return endMs
    const isConnected =
      failures.firstMs <= endMs + REMOVAL_GRACE_MS &&
      failures.gapMs <= extensionMs + REMOVAL_GRACE_MS
    const isLate = failures.lastMs >= endMs - REMOVAL_GRACE_MS
    return isConnected && isLate ? Math.max(endMs, failures.lastMs + extensionMs) : endMs
  }
}

/** FQDNNetworkPolicy of delta10: a fixed time after the newest answer, whatever its TTL. */
export function delta10Validity(expirationMs: number): Validity {
  return ({ lastSeenMs }) => lastSeenMs + expirationMs
}

export interface FloorRule {
  /** Least validity of an answer. */
  readonly floorMs: number
  /** Added to the end. */
  readonly graceMs: number
  /** True: the least TTL of the CNAME chain counts, as in Cilium. */
  readonly ofChain: boolean
}

/** NPEP-133, Antrea and Cilium: the TTL, at least a floor, of the answer that is valid longest. */
export function floorValidity({ floorMs, graceMs, ofChain }: FloorRule): Validity {
  return ({ endMs, chainEndMs, lastSeenMs }) => {
    return Math.max(ofChain ? chainEndMs : endMs, lastSeenMs + floorMs) + graceMs
  }
}
