import type { PeerEndpoint, SiteState } from '../peer-endpoint.ts'
import type { HealthOutcome } from './decide.ts'

const ADDRESS_TYPES: ReadonlySet<string> = new Set(['A', 'AAAA', 'CNAME'])

/** An endpoint of a peer with the address, and when its site was last heard. */
export type ForeignEndpoint = PeerEndpoint & { readonly seenMs: number }

/**
 * Returns the addresses of peers' endpoints for one host, and the CNAME targets that no endpoint
 * has. Leaves out addresses that are ours as well: our own probes decide about those.
 */
export function findForeign(host: {
  readonly own: readonly PeerEndpoint[]
  readonly ownDown: readonly string[]
  readonly siteStates: readonly SiteState[]
}): ReadonlyMap<string, readonly ForeignEndpoint[]> {
  const { own, ownDown, siteStates } = host
  const ours = new Set([...ownDown, ...own.flatMap((endpoint) => endpoint.targets)])
  const names = new Set(own.map((endpoint) => endpoint.dnsName))
  for (const { endpoints } of siteStates) for (const { dnsName } of endpoints) names.add(dnsName)
  const found = new Map<string, ForeignEndpoint[]>()
  for (const { endpoints, seenMs } of siteStates) {
    for (const endpoint of endpoints) {
      if (!ADDRESS_TYPES.has(endpoint.recordType)) continue
      for (const target of endpoint.targets) {
        if (ours.has(target) || names.has(target)) continue
        const known = found.get(target)
        if (known === undefined) found.set(target, [{ ...endpoint, seenMs }])
        else known.push({ ...endpoint, seenMs })
      }
    }
  }
  return found
}

/** Returns the site states with the health that was decided, by address. */
export function applyOutcomes(
  siteStates: readonly SiteState[],
  outcomes: ReadonlyMap<string, HealthOutcome>,
): readonly SiteState[] {
  const isDecided = [...outcomes.values()].some((one) => one === 'down' || one === 'up')
  if (!isDecided) return siteStates
  return siteStates.map((siteState) => {
    const endpoints = siteState.endpoints.map((endpoint) => withOutcomes(endpoint, outcomes))
    return { ...siteState, endpoints }
  })
}

function withOutcomes(
  endpoint: PeerEndpoint,
  outcomes: ReadonlyMap<string, HealthOutcome>,
): PeerEndpoint {
  const { recordType, targets, health } = endpoint
  if (!ADDRESS_TYPES.has(recordType)) return endpoint
  const working = targets.filter((target) => outcomes.get(target) !== 'down')
  if (working.length === 0) return { ...endpoint, health: 'down' }
  if (working.length < targets.length) return { ...endpoint, targets: working }
  const isUp = health === 'down' && targets.every((target) => outcomes.get(target) === 'up')
  return isUp ? { ...endpoint, health: 'up' } : endpoint
}
