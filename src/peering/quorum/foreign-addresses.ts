import { printLatin1 } from '../../base/latin1.ts'
import { RRType } from '../../dns/iana/types.ts'
import { printTarget } from '../../records/print-endpoint.ts'
import type { PeerEndpoint, SiteState } from '../peer-endpoint.ts'

const ADDRESS_TYPES: ReadonlySet<number> = new Set([RRType.A, RRType.AAAA, RRType.CNAME])

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
  const names = new Set(own.map(({ endpoint }) => printLatin1(endpoint.owner)))
  for (const { endpoints } of siteStates)
    for (const { endpoint } of endpoints) names.add(printLatin1(endpoint.owner))
  const found = new Map<string, ForeignEndpoint[]>()
  for (const { endpoints, exporter, seenMs } of siteStates) {
    for (const one of endpoints) {
      const { type, rdata } = one.endpoint
      if (!ADDRESS_TYPES.has(type)) continue
      for (const octets of rdata) {
        if (type === RRType.CNAME && names.has(printLatin1(octets))) continue
        const target = printTarget(type, octets)
        const known = found.get(target)
        if (known === undefined) found.set(target, [{ ...one, exporter, seenMs }])
        else known.push({ ...one, exporter, seenMs })
      }
    }
  }
  return found
}
