import type { PeerEndpoint, SiteState } from './peer-endpoint.ts'

/** If clocks of sites differ by more, this is reported, and their times are not compared. */
export const CLOCK_DIFFERS_MS = 10_000

/** A nameserver, and by how much its clock is ahead of ours. */
export interface TimedPeer {
  /** '' = several sites, or not known. */
  readonly ownSite: string
  /** In milliseconds; undefined = not known. */
  readonly clockAheadMs: number | undefined
}

/** By how much the clocks of the nameservers of each site are ahead of ours, in milliseconds, as far as is known. */
export type SiteClocks = ReadonlyMap<string, readonly number[]>

export function findSiteClocks(peers: readonly TimedPeer[]): SiteClocks {
  const clocks = new Map<string, readonly number[]>()
  for (const { ownSite, clockAheadMs } of peers) {
    if (ownSite === '' || clockAheadMs === undefined) continue
    clocks.set(ownSite, [...(clocks.get(ownSite) ?? []), clockAheadMs])
  }
  return clocks
}

/**
 * Returns the states of a host. If the clocks of its sites differ, its records are `isUndated`. It does not matter
 * which clock is wrong, so all nameservers order the records of the host alike. `own`: our endpoints of it.
 */
export function undateStates(
  states: readonly SiteState[],
  own: readonly PeerEndpoint[],
  clocks: SiteClocks,
): readonly SiteState[] {
  const others = states.filter(({ endpoints }) => endpoints.length > 0).map(({ site }) => site)
  const sites = new Set([...own.map(({ site }) => site), ...others])
  const known = [...sites].flatMap((site) => clocks.get(site) ?? [])
  const all = own.length > 0 ? [0, ...known] : known
  if (Math.max(...all) - Math.min(...all) <= CLOCK_DIFFERS_MS) return states
  return states.map((state) => {
    const endpoints = state.endpoints.map((one) => ({ ...one, isUndated: true }))
    return { ...state, endpoints }
  })
}

/** The time of a site state that is furthest in our future, in milliseconds from now; 0 = none is. */
export function aheadMs(times: Iterable<{ readonly sinceSeconds: number }>, nowMs: number): number {
  let most = 0
  for (const { sinceSeconds } of times) most = Math.max(most, sinceSeconds * 1000 - nowMs)
  return most
}

const CLOCK_FIX = 'its clock is ahead, or ours is behind; synchronise the clocks'

/** The clock that dates changes may be that of an operator, not that of the nameserver. */
export function printClockAhead(site: string): string {
  return /* warning */ `site ${site} dates changes in our future: ${CLOCK_FIX}`
}

/** Returns what is wrong with the clock of a site; '' = nothing. */
export function printClockFault(site: string, aheadMs: number): string {
  if (Math.abs(aheadMs) <= CLOCK_DIFFERS_MS) return ''
  const side = aheadMs > 0 ? 'ahead of' : 'behind'
  return /* warning */ `the clock of site ${site} is ${side} ours: synchronise the clocks; until then, site names decide conflicts, not ages of records`
}
