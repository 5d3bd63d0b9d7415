import type { PeerEndpoint, SiteState } from '../peer-endpoint.ts'

/** A site that drains its endpoints reports them as down, for older readers. That is no finding. */
export function withoutDrains(siteState: SiteState): SiteState {
  const { endpoints } = siteState
  const isDrained = (one: PeerEndpoint): boolean => one.settings?.drain !== undefined
  if (!endpoints.some(isDrained)) return siteState
  const known = endpoints.map((one) =>
    isDrained(one) ? { ...one, health: 'unknown' as const } : one,
  )
  return { ...siteState, endpoints: known }
}
