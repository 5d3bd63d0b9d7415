import type { SiteState } from '../peer-endpoint.ts'

/**
 * Everything known of peers is a set of shares in which each peer has one per site and host: the newest. So nobody can
 * take back what another one told. Joining two such sets is commutative, associative and idempotent, since it takes
 * the maximum of a total order, so it matters neither who told what first, nor how often. In order of site, host and
 * teller.
 */
export function joinSiteStates(
  a: readonly SiteState[],
  b: readonly SiteState[] = [],
): readonly SiteState[] {
  const newest = new Map<string, SiteState>()
  for (const siteState of [...a, ...b]) {
    const key = JSON.stringify([siteState.site, siteState.rootHost, siteState.exporter])
    const known = newest.get(key)
    if (known === undefined || isNewer(siteState, known)) newest.set(key, siteState)
  }
  const keys = [...newest.keys()].sort()
  return keys.map((key) => newest.get(key)!)
}

/** Of the same moment v2 wins, then the site's own, then the greater text: any rule does that everyone keeps. */
function isNewer(siteState: SiteState, known: SiteState): boolean {
  if (siteState === known) return false
  if (siteState.seenMs !== known.seenMs) return siteState.seenMs > known.seenMs
  if (siteState.generation !== known.generation) return siteState.generation === 'v2'
  if (siteState.isOwn !== known.isOwn) return siteState.isOwn
  return JSON.stringify(siteState.endpoints) > JSON.stringify(known.endpoints)
}
