import { printLatin1 } from '../base/latin1.ts'
import { packEndpoint } from '../records/pack.ts'
import type { PeerEndpoint, SiteState } from './peer-endpoint.ts'

/** How long a peer may report other endpoints of our site: our own nameserver follows us in a few seconds. */
export const SITE_CONFLICT_MS = 30_000

/**
 * Returns the endpoints that a peer reports under the name of our site and that none of our records
 * has: another site has the same name. `ours`: all endpoints of our records with this host. A
 * nameserver of our own leaves out targets that are down, and learns of a new TTL later.
 */
export function findForeignExports(
  ours: readonly PeerEndpoint[],
  reported: readonly PeerEndpoint[],
): readonly PeerEndpoint[] {
  const known = new Map<string, Set<string>>()
  for (const one of ours) {
    const targets = known.get(identify(one)) ?? new Set()
    for (const target of one.endpoint.rdata) targets.add(printLatin1(target))
    known.set(identify(one), targets)
  }
  return reported.filter((one) => {
    const targets = known.get(identify(one))
    return one.endpoint.rdata.some((target) => !targets?.has(printLatin1(target)))
  })
}

/** `setting`: where the name of a site is set. */
export function fixSiteName(setting: string): string {
  return `give each site a name of its own with ${setting}; if the peer is our own nameserver, check that it serves our current records`
}

/** The endpoints of that site, of all states. */
export function endpointsOfSite(
  states: readonly SiteState[],
  site: string,
): readonly PeerEndpoint[] {
  return states.filter((state) => state.site === site).flatMap(({ endpoints }) => endpoints)
}

function identify({ rootHost, endpoint }: PeerEndpoint): string {
  const steered = { ...endpoint, rdata: [], ttlSeconds: 0, probeAt: undefined }
  return `${rootHost} ${packEndpoint(steered)}`
}
