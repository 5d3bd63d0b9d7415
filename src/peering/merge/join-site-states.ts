import { peerEndpointKey, type SiteState } from '../peer-endpoint.ts'

/**
 * Joins what is known of peers: a set of site states with one state per peer, site and host, the
 * newest. So no peer can withdraw what another one reported. The join takes the maximum of a total
 * order. Therefore it is commutative, associative and idempotent: neither order nor repetition
 * matters. In order of site, host and exporter.
 */
export function joinSiteStates(siteStates: readonly SiteState[]): readonly SiteState[] {
  const newest = new Map<string, SiteState>()
  for (const siteState of siteStates) {
    const key = JSON.stringify([siteState.site, siteState.rootHost, siteState.exporter])
    const known = newest.get(key)
    if (known === undefined || isNewer(siteState, known)) newest.set(key, siteState)
  }
  const keys = [...newest.keys()].sort()
  return keys.map((key) => newest.get(key)!)
}

/**
 * At equal times, v2 wins, then the site's own state, then the greater content. Any rule works if all
 * servers use the same one.
 */
function isNewer(siteState: SiteState, known: SiteState): boolean {
  if (siteState === known) return false
  if (siteState.seenMs !== known.seenMs) return siteState.seenMs > known.seenMs
  if (siteState.generation !== known.generation) return siteState.generation === 'v2'
  if (siteState.isOwn !== known.isOwn) return siteState.isOwn
  return contentOf(siteState) > contentOf(known)
}

function contentOf({ endpoints }: SiteState): string {
  return JSON.stringify(endpoints.map(peerEndpointKey))
}
