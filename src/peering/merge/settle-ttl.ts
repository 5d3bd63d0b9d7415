import type { MergeConflict } from './merged-endpoint.ts'
import { groupBy, isOurs, type Part } from './part.ts'

/** Lowest TTL that endpoints of peers are served with, so that resolvers can cache them. */
const PEER_TTL_MIN_SECONDS = 5

/**
 * Returns the TTL of one name and type (RFC 2181 section 5.2): the lowest of ours. If we have no endpoint there, the
 * lowest of all sites, but at least five seconds. Adds each site whose TTL differs from ours, or is below five
 * seconds, to `conflicts`. `parts`: in order (`compareParts`); at least one.
 */
export function settleTtl(
  parts: readonly Part[],
  label: string,
  conflicts: MergeConflict[],
): number {
  const ours = parts.filter(isOurs)
  const others = parts.filter((part) => !isOurs(part))
  const ownSeconds = lowest(ours)
  for (const [site, reported] of groupBy(others, ({ endpoint }) => endpoint.site)) {
    const seconds = lowest(reported)
    if (ours.length > 0 && seconds !== ownSeconds) {
      const text = `${label}: TTL ${seconds} of ${site} differs from ours: ${ownSeconds} is served`
      conflicts.push({ site, text })
    } else if (seconds < PEER_TTL_MIN_SECONDS) conflicts.push(describeLow(site, seconds, label))
  }
  if (ours.length === 0) return Math.max(lowest(others), PEER_TTL_MIN_SECONDS)
  if (ownSeconds < PEER_TTL_MIN_SECONDS) {
    conflicts.push(describeLow(ours[0]!.endpoint.site, ownSeconds, label))
  }
  return ownSeconds
}

function describeLow(site: string, seconds: number, label: string): MergeConflict {
  const text = `${label}: TTL ${seconds} of ${site}: its peers serve at least ${PEER_TTL_MIN_SECONDS}`
  return { site, text }
}

function lowest(parts: readonly Part[]): number {
  return parts.reduce((ttl, { endpoint }) => Math.min(ttl, endpoint.ttlSeconds), Infinity)
}
