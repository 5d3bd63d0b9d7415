import type { PeerEndpoint, SiteState } from '../peer-endpoint.ts'
import type { SiteObservation } from '../quorum/observation-codec.ts'
import { sortUnique } from '../to-peer-endpoint.ts'

/**
 * Returns one line for each address that some sites report as up and others as down, in order.
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
  for (const { health, targets } of own.endpoints) {
    if (health === 'up') for (const target of targets) note(target, 'up', 'this site')
  }
  for (const { endpoints } of siteStates) {
    for (const { health, targets, site } of endpoints) {
      if (health !== 'unknown') for (const target of targets) note(target, health, site)
    }
  }
  for (const { address, health, site } of observations) {
    if (sites.has(address)) note(address, health, site)
  }
  const disputed = [...sites].filter(([, { up, down }]) => up.length > 0 && down.length > 0)
  const listOf = (of: readonly string[]): string => sortUnique(of).join(' and ')
  const lines = disputed.map(([target, { up, down }]) => {
    return `${target}: up at ${listOf(up)}, down at ${listOf(down)}`
  })
  return lines.sort()
}
