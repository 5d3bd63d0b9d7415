import type { PeerEndpoint, SiteState } from '../peer-endpoint.ts'
import { groupBy } from './part.ts'

/** Who was not heard for this much longer than another nameserver of its site has no say beside it. */
const YIELD_MS = 20_000

/** How long after another one a nameserver of a site may have been heard, and still count beside it. */
export function yieldMsOf(expiryMs: number): number {
  return Math.min(YIELD_MS, expiryMs / 4)
}

/**
 * What counts of what several peers tell of one site and host: one share for each. A function of the set, and not of
 * the time, so that silence brings nothing up.
 *
 * - Where a nameserver of the site is known, only its nameservers have a say. Else everybody has who tells of it.
 * - Of these, one that is silent has none beside one that is heard.
 * - Each endpoint is taken as it changed last. One that only some have stays: whether it is new there or gone
 *   can't be told apart, and nobody may take back what another one tells.
 *
 * `shares`: joined.
 */
export function chooseSiteStates(
  siteStates: readonly SiteState[],
  expiryMs: number,
): readonly SiteState[] {
  const groups = groupBy(siteStates, ({ site, rootHost }) => `${site} ${rootHost}`)
  if (groups.size === siteStates.length) return siteStates
  return [...groups.values()].map((group) =>
    group.length === 1 ? group[0]! : settle(group, yieldMsOf(expiryMs)),
  )
}

function settle(group: readonly SiteState[], yieldMs: number): SiteState {
  const own = group.filter((siteState) => siteState.isOwn)
  const heard = own.length > 0 ? own : group.filter((siteState) => siteState.endpoints.length > 0)
  if (heard.length === 0) return group[0]!
  const newest = heard.reduce((a, b) => (b.seenMs > a.seenMs ? b : a))
  const current = heard.filter((one) => one === newest || newest.seenMs - one.seenMs <= yieldMs)
  if (current.length === 1) return newest
  const generation = current.some((siteState) => siteState.generation === 'v2') ? 'v2' : 'v1'
  return {
    ...newest,
    generation,
    endpoints: unite(current.map((siteState) => siteState.endpoints)),
  }
}

/** Endpoints by name, type and set identifier, each as who changed it last has it. */
function unite(exported: readonly (readonly PeerEndpoint[])[]): readonly PeerEndpoint[] {
  const chosen = new Map<string, { since: number; endpoints: Map<string, PeerEndpoint> }>()
  for (const endpoints of exported) {
    for (const [key, same] of groupBy(endpoints, identityOf)) {
      const known = chosen.get(key)
      const since = same.reduce((latest, one) => Math.max(latest, one.sinceSeconds), 0)
      if (known !== undefined && since < known.since) continue
      const isLater = known === undefined || since > known.since
      const into = isLater ? new Map<string, PeerEndpoint>() : known.endpoints
      for (const one of same) into.set(JSON.stringify(one), one)
      chosen.set(key, { since, endpoints: into })
    }
  }
  return [...chosen.values()].flatMap(({ endpoints }) => [...endpoints.values()])
}

function identityOf({ dnsName, recordType, setIdentifier }: PeerEndpoint): string {
  return JSON.stringify([dnsName, recordType, setIdentifier])
}
