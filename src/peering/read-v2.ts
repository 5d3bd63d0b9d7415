import { ENDPOINTS_MAX } from '../record/dns-record.ts'
import type { PeerEndpoint, SiteState } from './peer-endpoint.ts'
import { scanPeerEndpoint } from './v2-codec.ts'

/** Most endpoints that one peer may tell, over all hosts: whoever reads its zone counts. */
export const PEER_ENDPOINTS_MAX = 500_000
/** Octets of what a peer tells of one host: a thousand endpoints have a fifth of that. */
export const HOST_OCTETS_MAX = 1024 * 1024
/** Sites that one peer may speak for at one host: its own, and then some. */
const SITES_MAX = 16
/** Problems of one host that are told one by one. */
const PROBLEMS_MAX = 10

export interface V2Host {
  /** One per site and root host: `x` and `*.x` are told at one name. In order of both. */
  readonly siteStates: readonly SiteState[]
  /** What was refused, and why; text of the peer in them is quoted. At most ten, and how many more. */
  readonly problems: readonly string[]
}

/** Where, when and by whom endpoints were told. */
export interface V2HostContext {
  /** The name behind `v2.`, without `.kdrnt` and final dot, lower case. */
  readonly host: string
  readonly seenMs: number
  /** Address of the peer. */
  readonly exporter: string
  /** The site that the peer is a nameserver of; undefined = the one that it tells of here, if it is one. */
  readonly ownSite?: string | undefined
  /** How many endpoints the peer may still tell. */
  readonly room?: number
}

/**
 * What a peer tells whole of one host: the TXT rdata of `v2.<host>.kdrnt`. A bad endpoint is refused
 * alone. Beyond 1000 endpoints, or `room`, or a mebibyte, or sixteen sites, the rest is refused: which that is does
 * not depend on the order in which they came.
 */
export function readV2Host(records: readonly Uint8Array[], place: V2HostContext): V2Host {
  const { host, room = PEER_ENDPOINTS_MAX } = place
  const problems: string[] = []
  const taken = takeInOrder(records, Math.max(0, Math.min(ENDPOINTS_MAX, room)))
  const endpoints: PeerEndpoint[] = []
  for (const rdata of taken) {
    const endpoint = scanPeerEndpoint(rdata)
    if (typeof endpoint === 'string') problems.push(`${host}: ${endpoint}`)
    else if (endpoint.rootHost === host || endpoint.rootHost === `*.${host}`) {
      endpoints.push(endpoint)
    } else {
      problems.push(`${host}: an endpoint of ${endpoint.rootHost} does not belong there`)
    }
  }
  const sites = [...new Set(endpoints.map(({ site }) => site))].sort()
  for (const site of sites.splice(SITES_MAX)) problems.push(`${host}: ${site} is one site too many`)
  if (taken.length < records.length) {
    problems.push(`${host}: ${records.length} endpoints, only ${taken.length} are taken`)
  }
  return { siteStates: collect(endpoints, sites, place), problems: cutProblems(problems, host) }
}

/** In order of octets, as many as there may be. */
function takeInOrder(records: readonly Uint8Array[], limit: number): readonly Uint8Array[] {
  const ordered = [...records].sort(Buffer.compare).slice(0, limit)
  let octets = 0
  return ordered.filter((rdata) => {
    const fits = octets + rdata.length <= HOST_OCTETS_MAX
    if (fits) octets += rdata.length
    return fits
  })
}

function collect(
  endpoints: readonly PeerEndpoint[],
  sites: readonly string[],
  { seenMs, exporter, ownSite }: V2HostContext,
): SiteState[] {
  const own = ownSite ?? (sites.length === 1 ? sites[0] : '')
  const known = new Set(sites)
  const found = new Map<string, PeerEndpoint[]>()
  for (const endpoint of endpoints) {
    if (!known.has(endpoint.site)) continue
    const key = `${endpoint.site} ${endpoint.rootHost}`
    const exported = found.get(key)
    if (exported === undefined) found.set(key, [endpoint])
    else exported.push(endpoint)
  }
  return [...found.keys()].sort().map((key) => {
    const exported = found.get(key)!
    const { site, rootHost } = exported[0]!
    const isOwn = site === own
    return {
      site,
      exporter: exporter,
      isOwn,
      rootHost,
      endpoints: exported,
      seenMs,
      generation: 'v2',
    }
  })
}

/** The first ten, and how many more there are. */
export function cutProblems(problems: readonly string[], host: string): readonly string[] {
  const more = problems.length - PROBLEMS_MAX
  if (more <= 0) return problems
  return [...problems.slice(0, PROBLEMS_MAX), `${host}: and ${more} more`]
}
