import type { SiteShare } from '../shared-endpoint.ts'

/**
 * Everything known of peers is a set of shares in which each peer has one per site and host: the newest. So nobody can
 * take back what another one told. Joining two such sets is commutative, associative and idempotent, since it takes
 * the maximum of a total order, so it matters neither who told what first, nor how often. In order of site, host and
 * teller.
 */
export function joinShares(
  a: readonly SiteShare[],
  b: readonly SiteShare[] = [],
): readonly SiteShare[] {
  const newest = new Map<string, SiteShare>()
  for (const share of [...a, ...b]) {
    const key = JSON.stringify([share.site, share.rootHost, share.teller])
    const known = newest.get(key)
    if (known === undefined || isNewer(share, known)) newest.set(key, share)
  }
  const keys = [...newest.keys()].sort()
  return keys.map((key) => newest.get(key)!)
}

/** Of the same moment v2 wins, then the site's own, then the greater text: any rule does that everyone keeps. */
function isNewer(share: SiteShare, known: SiteShare): boolean {
  if (share === known) return false
  if (share.seenMs !== known.seenMs) return share.seenMs > known.seenMs
  if (share.generation !== known.generation) return share.generation === 'v2'
  if (share.isOwn !== known.isOwn) return share.isOwn
  return JSON.stringify(share.endpoints) > JSON.stringify(known.endpoints)
}
