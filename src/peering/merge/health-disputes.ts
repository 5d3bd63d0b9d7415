import { type PeerEndpoint, type SiteState, targetsOf } from '../peer-endpoint.ts'
import type { SiteObservation } from '../quorum/observation-codec.ts'
import { sortUnique } from '../to-peer-endpoint.ts'

/**
 * Returns one line for each address that some sites report as up and others as down, or that only some of the sites
 * that have it report as down; in order.
 * `own`: endpoints of this site; `down`: its addresses that are down, which `own` may lack.
 * `observations`: of addresses by other sites than their own; they alone make no dispute.
 */
export function findHealthDisputes(
  own: { readonly endpoints: readonly PeerEndpoint[]; readonly down: readonly string[] },
  siteStates: readonly SiteState[],
  observations: readonly SiteObservation[] = [],
): readonly string[] {
  const sites = new Map<string, { readonly up: string[]; readonly down: string[] }>()
  const note = (target: string, health: 'up' | 'down', site: string): void => {
    const known = sites.get(target) ?? { up: [], down: [] }
    known[health].push(site)
    sites.set(target, known)
  }
  for (const target of own.down) note(target, 'down', 'this site')
  for (const { health, endpoint } of own.endpoints) {
    if (health === 'up') for (const target of targetsOf(endpoint)) note(target, 'up', 'this site')
  }
  const unknown = new Map<string, string[]>()
  for (const { endpoints } of siteStates) {
    for (const { health, endpoint, site } of endpoints) {
      for (const target of targetsOf(endpoint)) {
        if (health === 'unknown') unknown.set(target, [...(unknown.get(target) ?? []), site])
        else note(target, health, site)
      }
    }
  }
  const lines = [...sites].flatMap(([target, { up, down }]) => {
    const others = (unknown.get(target) ?? []).filter((site) => !down.includes(site))
    const isShared = up.length === 0 && down.length > 0 && others.length > 0
    return isShared ? [`${target}: not known at ${list(others)}, down at ${list(down)}`] : []
  })
  for (const { address, health, site } of observations) {
    if (sites.has(address)) note(address, health, site)
  }
  for (const [target, { up, down }] of sites) {
    if (up.length === 0 || down.length === 0) continue
    lines.push(`${target}: up at ${list(up)}, down at ${list(down)}`)
  }
  return lines.sort()
}

function list(sites: readonly string[]): string {
  return sortUnique(sites).join(' and ')
}
