import { type PeerEndpoint, peerEndpointKey, type SiteState } from '../peer-endpoint.ts'
import { joinSiteStates } from './join-site-states.ts'
import { groupBy, setKey } from './part.ts'

/**
 * A nameserver that was heard this much earlier than another one of its site is ignored beside it.
 */
const YIELD_MS = 20_000

/** Nameservers are polled in turn. One that was heard this much earlier than another one may be the exporter. */
const IN_TURN_MS = 5000

/** Returns by how much earlier than another nameserver of the site one may have been heard and still count. */
export function yieldMsOf(expiryMs: number): number {
  return Math.min(YIELD_MS, expiryMs / 4)
}

/**
 * Returns one state for each site except ours, and host, from what peers report. The result depends only on the set of
 * states, not on the current time, so that silence alone never brings back old data.
 *
 * - If one peer reports several states of a site, the newest counts.
 * - If any peer is authoritative for the site, only those peers count; otherwise every peer that
 *   reports it counts.
 * - Of these, a silent peer does not count beside one that is heard.
 * - Of each endpoint, the version that changed last is used. An endpoint that only some peers
 *   report is kept: it may be new at them or removed at the others, and no peer may withdraw what
 *   another one reports.
 */
export function chooseOthers(
  ownSite: string,
  siteStates: readonly SiteState[],
  silentMs: number,
): readonly SiteState[] {
  const others = joinSiteStates(siteStates).filter(({ site }) => site !== ownSite)
  const groups = groupBy(others, ({ site, rootHost }) => `${site} ${rootHost}`)
  return [...groups.values()].map((group) =>
    group.length === 1 ? group[0]! : settle(group, yieldMsOf(silentMs)),
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
  // The newest one alternates, and with it the texts and ages that name the exporter would.
  const steady = current.find(({ seenMs }) => newest.seenMs - seenMs <= IN_TURN_MS)!
  return {
    ...newest,
    exporter: steady.exporter,
    generation,
    endpoints: unite(current.map((siteState) => siteState.endpoints)),
  }
}

/** One version of the endpoints with one name, type and set identifier. */
interface Version {
  readonly since: number
  readonly endpoints: ReadonlyMap<string, PeerEndpoint>
}

/**
 * Returns the endpoints by name, type and set identifier, each from the peer where it changed last. If versions changed
 * at the same time, all of them are kept, unless they have a set identifier. Versions with one set identifier are one
 * endpoint before and after a change: the greater content wins, because all servers must choose the same version.
 */
function unite(exported: readonly (readonly PeerEndpoint[])[]): readonly PeerEndpoint[] {
  const chosen = new Map<string, Version>()
  for (const endpoints of exported) {
    for (const [key, same] of groupBy(endpoints, identityOf)) {
      const known = chosen.get(key)
      const since = same.reduce((latest, one) => Math.max(latest, one.sinceSeconds), 0)
      const found = new Map(same.map((one) => [peerEndpointKey(one), one]))
      const version = { since, endpoints: found }
      if (known === undefined || since > known.since) chosen.set(key, version)
      if (known === undefined || since !== known.since) continue
      if (same[0]!.endpoint.setIdentifier === '')
        chosen.set(key, { since, endpoints: new Map([...known.endpoints, ...found]) })
      else if (contentOf(version) > contentOf(known)) chosen.set(key, version)
    }
  }
  return [...chosen.values()].flatMap(({ endpoints }) => [...endpoints.values()])
}

function contentOf({ endpoints }: Version): string {
  return [...endpoints.keys()].sort().join()
}

function identityOf({ endpoint }: PeerEndpoint): string {
  return JSON.stringify([setKey(endpoint), endpoint.setIdentifier])
}
