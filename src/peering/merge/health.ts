import { selectInService } from '../../health/in-service.ts'
import type { EndpointHealth } from '../peer-endpoint.ts'
import type { MergedEndpoint } from './merged-endpoint.ts'
import { groupBy, setKey } from './part.ts'

/** Maximum length of a CNAME chain inside one host. */
const CHAIN_MAX = 8

/**
 * Sets the health by what all sites know. A CNAME whose target is a name among the endpoints has
 * the health of that name. The reason: the site that owns the CNAME sees only its own part of that
 * name.
 */
export function deriveHealth(endpoints: readonly MergedEndpoint[]): MergedEndpoint[] {
  const names = new Set(endpoints.map((e) => e.dnsName))
  const isInner = (e: MergedEndpoint): boolean =>
    e.recordType === 'CNAME' && names.has(e.targets[0]!)
  let derived = endpoints.map((e) =>
    isInner(e) ? { ...e, health: 'unknown' as EndpointHealth } : e,
  )
  for (let step = 0; step < CHAIN_MAX; step++) {
    const byName = groupBy(derived, (e) => e.dnsName)
    let isChanged = false
    derived = derived.map((e) => {
      if (!isInner(e)) return e
      const health = healthOf(byName.get(e.targets[0]!)!)
      isChanged ||= health !== e.health
      return { ...e, health }
    })
    if (!isChanged) break
  }
  return derived
}

function healthOf(endpoints: readonly MergedEndpoint[]): EndpointHealth {
  if (endpoints.some((e) => e.health === 'up')) return 'up'
  return endpoints.every((e) => e.health === 'down') ? 'down' : 'unknown'
}

/** Returns the endpoints to serve: removes those that are down, unless that empties their set. */
export function dropDown(endpoints: readonly MergedEndpoint[]): MergedEndpoint[] {
  const serving = new Set<MergedEndpoint>()
  for (const members of groupBy(endpoints, setKey).values()) {
    const left = selectInService(
      members.map(({ health }) => ({ count: 1, isOut: () => health === 'down' })),
    )
    for (const [i, member] of members.entries()) if (left[i]!.length > 0) serving.add(member)
  }
  return endpoints.filter((endpoint) => serving.has(endpoint))
}
