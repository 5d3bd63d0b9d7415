import { scanAddress } from '../../dns/text/address.ts'
import { isPrivateAddress } from '../../health/probes/probe-policy.ts'
import type { Leaf } from '../../health/record-probes.ts'
import type { Endpoint } from '../../records/dns-record.ts'
import type { ProbeAt } from '../../records/health-check.ts'
import { groupBy } from '../merge/part.ts'
import type { PeerEndpoint } from '../peer-endpoint.ts'

/** An endpoint of a site that has an address. */
interface Probed extends Pick<PeerEndpoint, 'site'> {
  readonly endpoint: Pick<Endpoint, 'probeAt'>
}

/**
 * Returns the addresses of peers to probe, in order of precedence: an equal number of each site, so that a bound does
 * not leave out a whole site, and all sites choose the same. Leaves out addresses that only their own site can probe.
 * `foreign`: endpoints of peers by address.
 */
export function findProbed(foreign: ReadonlyMap<string, readonly Probed[]>): readonly Leaf[] {
  const found = [...foreign].flatMap(([address, endpoints]) => {
    // Sites that share an address may probe it at different places. All observers choose the same.
    const [probeAt] = endpoints
      .flatMap(({ endpoint }) => endpoint.probeAt ?? [])
      .sort(comparePlaces)
    if (isOutOfReach(address, probeAt)) return []
    const [site = ''] = endpoints.map((one) => one.site).sort()
    return [{ site, leaf: { address, probeAt } }]
  })
  const ranked = [...groupBy(found, ({ site }) => site).values()].flatMap((ofSite) => {
    ofSite.sort((a, b) => compare(a.leaf.address, b.leaf.address))
    return ofSite.map((one, rank) => ({ ...one, rank }))
  })
  ranked.sort((a, b) => a.rank - b.rank || compare(a.site, b.site))
  return ranked.map(({ leaf }) => leaf)
}

/**
 * True for a public address that its site probes at a private address or a host name: at this site, these can be
 * another machine. So a peer cannot point our probes into our own network by `health-address`.
 */
function isOutOfReach(address: string, probeAt: ProbeAt | undefined): boolean {
  if (probeAt === undefined || probeAt.address === '') return false
  const isPublic = scanAddress(probeAt.address) !== undefined && !isPrivateAddress(probeAt.address)
  return !isPublic && !isPrivateAddress(address)
}

function comparePlaces(a: ProbeAt, b: ProbeAt): number {
  return compare(a.address, b.address) || a.port - b.port
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
