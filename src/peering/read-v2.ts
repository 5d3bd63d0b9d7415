import { ENDPOINTS_MAX } from '../records/dns-record.ts'
import type { PeerEndpoint, SiteState } from './peer-endpoint.ts'
import { scanPeerEndpoint } from './v2-codec.ts'

/** Maximum of endpoints from one peer, over all hosts. The reader of the zone enforces it. */
export const PEER_ENDPOINTS_MAX = 500_000
/** Octets of one peer's data for one host: about five times the size of a thousand endpoints. */
const HOST_OCTETS_MAX = 1024 * 1024
/** Maximum of sites that one peer may report for one host: its own, and some more. */
const SITES_MAX = 16
/** Maximum of problems of one host that are listed one by one. */
const PROBLEMS_MAX = 10

export interface V2Host {
  /** One state per site and root host: `x` and `*.x` are exported at one name. In order of both. */
  readonly siteStates: readonly SiteState[]
  /** What was refused, and why; quotes the peer's text. At most ten lines, and how many more. */
  readonly problems: readonly string[]
}

/** The place, time and exporter of some endpoints. */
interface V2HostContext {
  /** The name behind `v2.`, without `.kdrnt` and final dot, lower case. */
  readonly host: string
  readonly seenMs: number
  /** Address of the peer. */
  readonly exporter: string
  /** Unix time; missing = any creation time of a record is possible. */
  readonly nowSeconds?: number | undefined
  /**
   * The site that the peer is a nameserver of; undefined = the site that it reports here, if it
   * reports exactly one.
   */
  readonly ownSite?: string | undefined
  /** How many more endpoints the peer may report. */
  readonly room?: number
}

/**
 * Reads the whole endpoints that a peer exports for one host: the TXT rdata of `v2.<host>.kdrnt`.
 * An invalid endpoint is refused alone. If only a setting of its record is invalid, this setting is
 * ignored, and reported once. The limits are 1000 endpoints, `room`, one mebibyte and
 * sixteen sites. Above a limit, the rest is refused; which part that is does not depend on the
 * order of the records.
 */
export function readV2Host(records: readonly Uint8Array[], place: V2HostContext): V2Host {
  const { host, nowSeconds, room = PEER_ENDPOINTS_MAX } = place
  const problems: string[] = []
  const ignored = new Set<string>()
  const taken = takeInOrder(records, Math.max(0, Math.min(ENDPOINTS_MAX, room)))
  const endpoints: PeerEndpoint[] = []
  for (const rdata of taken) {
    const faults: string[] = []
    const onProblem = (text: string): void => void faults.push(text)
    const endpoint = scanPeerEndpoint(rdata, { nowSeconds, onProblem })
    if (typeof endpoint === 'string') problems.push(`${host}: ${endpoint}`)
    else if (endpoint.rootHost === host || endpoint.rootHost === `*.${host}`) {
      endpoints.push(endpoint)
      for (const text of faults) ignored.add(`${host}: ${text}`)
    } else {
      problems.push(`${host}: an endpoint of ${endpoint.rootHost} does not belong to this host`)
    }
  }
  const sites = [...new Set(endpoints.map(({ site }) => site))].sort()
  for (const site of sites.splice(SITES_MAX))
    problems.push(`${host}: too many sites, ${site} is ignored`)
  if (taken.length < records.length) {
    problems.push(`${host}: ${records.length} endpoints, only ${taken.length} are accepted`)
  }
  problems.push(...ignored)
  return { siteStates: collect(endpoints, sites, place), problems: cutProblems(problems, host) }
}

/** Returns the first records, sorted by octets, up to the limit. */
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

/** Returns the first ten problems, and how many more exist. */
export function cutProblems(problems: readonly string[], host: string): readonly string[] {
  const more = problems.length - PROBLEMS_MAX
  if (more <= 0) return problems
  return [...problems.slice(0, PROBLEMS_MAX), `${host}: and ${more} more`]
}
