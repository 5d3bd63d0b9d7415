import type { PeerEndpoint, SiteState } from '../peer-endpoint.ts'

const ADDRESS_TYPES: ReadonlySet<string> = new Set(['A', 'AAAA', 'CNAME'])

/** An endpoint that has the address, the peer that reported it, and the time of the report. */
type ForeignEndpoint = PeerEndpoint & Pick<SiteState, 'exporter' | 'seenMs'>

/**
 * Returns the addresses of peers' endpoints for one host, and the CNAME targets that no endpoint
 * has. Some of them may be ours as well.
 */
export function findForeign(host: {
  readonly own: readonly PeerEndpoint[]
  readonly siteStates: readonly SiteState[]
}): ReadonlyMap<string, readonly ForeignEndpoint[]> {
  const { own, siteStates } = host
  const names = new Set(own.map((endpoint) => endpoint.dnsName))
  for (const { endpoints } of siteStates) for (const { dnsName } of endpoints) names.add(dnsName)
  const found = new Map<string, ForeignEndpoint[]>()
  for (const { endpoints, exporter, seenMs } of siteStates) {
    for (const endpoint of endpoints) {
      if (!ADDRESS_TYPES.has(endpoint.recordType)) continue
      for (const target of endpoint.targets) {
        if (names.has(target)) continue
        const known = found.get(target)
        if (known === undefined) found.set(target, [{ ...endpoint, exporter, seenMs }])
        else known.push({ ...endpoint, exporter, seenMs })
      }
    }
  }
  return found
}
