import type { Contribution } from './owner-set.ts'
import { type Conflict, conflictAt, contrast } from './record-conflicts.ts'

/** Lowest TTL of sets with endpoints of other sites, so that resolvers can cache them. */
const SITES_TTL_MIN_SECONDS = 5

/**
 * Returns the TTL of one name and type (RFC 2181 section 5.2): the lowest of its endpoints. If some of
 * them are from other sites, no endpoint counts as less than five seconds. So all sites that have the
 * endpoints of all serve the same TTL. `site`: our own; '' = none.
 */
export function settleTtl(
  members: readonly Contribution[],
  site: string,
  label: () => string,
  conflicts: Conflict[],
): number {
  const first = members[0]!
  if (members.length === 1 && first.site === site) return first.endpoint.ttlSeconds
  const floor = members.some((member) => member.site !== site) ? SITES_TTL_MIN_SECONDS : 0
  const ttlOf = ({ endpoint }: Contribution): number => Math.max(endpoint.ttlSeconds, floor)
  // The TTL of an ALIAS follows that of its addresses: it contradicts no other.
  const written = members.filter(({ endpoint }) => endpoint.aliasOf === undefined)
  let lowest = written[0] ?? first
  let highest = lowest
  for (const member of written) {
    if (ttlOf(member) < ttlOf(lowest)) lowest = member
    if (ttlOf(member) > ttlOf(highest)) highest = member
  }
  const seconds = members.reduce((least, member) => Math.min(least, ttlOf(member)), ttlOf(lowest))
  if (lowest !== highest) {
    const isFirst = lowest.key !== highest.key && members.indexOf(lowest) < members.indexOf(highest)
    const [one, other] = isFirst ? [lowest, highest] : [highest, lowest]
    const ttls = contrast([`TTL ${ttlOf(one)}`, one], [`${ttlOf(other)}`, other])
    const text = `${label()}: ${ttls}: ${ttlOf(lowest)} is served; set the same TTL for both`
    conflicts.push(conflictAt(other, text))
  }
  const low = members.reduce((a, b) => (b.endpoint.ttlSeconds < a.endpoint.ttlSeconds ? b : a))
  if (low.endpoint.ttlSeconds < floor) {
    const text = `${label()}: TTL ${low.endpoint.ttlSeconds} (${low.place}) counts as ${floor}, the lowest for endpoints of several sites; set a TTL of at least ${floor}`
    conflicts.push(conflictAt(low, text))
  }
  return seconds
}
