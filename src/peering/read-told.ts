import { ENDPOINTS_MAX } from '../record/dns-record.ts'
import type { SharedEndpoint, SiteShare } from './shared-endpoint.ts'
import { scanShared } from './shared-text.ts'

/** Most endpoints that one peer may tell, over all hosts: whoever reads its zone counts. */
export const PEER_ENDPOINTS_MAX = 500_000
/** Sites that one peer may speak for: its own, and then some. */
const SITES_MAX = 16
/** Problems of one host that are told one by one. */
const PROBLEMS_MAX = 10

export interface ToldHost {
  /** One per site and root host: `x` and `*.x` are told at one name. In order of both. */
  readonly shares: readonly SiteShare[]
  /** What was refused, and why; text of the peer in them is quoted. At most ten, and how many more. */
  readonly problems: readonly string[]
}

/** Where and when endpoints were told. */
export interface ToldPlace {
  /** The name behind `v2.`, without `.kdrnt` and final dot, lower case. */
  readonly host: string
  readonly seenMs: number
  /** How many endpoints the peer may still tell. */
  readonly room?: number
}

/**
 * What a peer tells whole of one host: the TXT rdata of `v2.<host>.kdrnt`. A bad endpoint is refused
 * alone. Beyond 1000 endpoints, or `room`, the rest is refused.
 */
export function readTold(
  records: readonly Uint8Array[],
  { host, seenMs, room = PEER_ENDPOINTS_MAX }: ToldPlace,
): ToldHost {
  const problems: string[] = []
  const shares = new Map<string, SharedEndpoint[]>()
  const limit = Math.max(0, Math.min(ENDPOINTS_MAX, room))
  const isCut = records.length > limit
  // In order of octets: what is left out does not depend on the order in which they came.
  const taken = isCut ? [...records].sort(Buffer.compare).slice(0, limit) : records
  for (const rdata of taken) {
    const endpoint = scanShared(rdata)
    if (typeof endpoint === 'string') {
      problems.push(`${host}: ${endpoint}`)
      continue
    }
    const { site, rootHost } = endpoint
    if (rootHost !== host && rootHost !== `*.${host}`) {
      problems.push(`${host}: an endpoint of ${rootHost} does not belong there`)
      continue
    }
    const key = `${site} ${rootHost}`
    const known = shares.get(key)
    if (known === undefined && shares.size === SITES_MAX) {
      problems.push(`${host}: ${site} is one site too many`)
      continue
    }
    if (known === undefined) shares.set(key, [endpoint])
    else known.push(endpoint)
  }
  if (isCut) {
    problems.push(`${host}: ${records.length} endpoints, only ${limit} are taken`)
  }
  return { shares: collect(shares, seenMs), problems: cut(problems, host) }
}

function collect(
  shares: ReadonlyMap<string, readonly SharedEndpoint[]>,
  seenMs: number,
): SiteShare[] {
  const keys = [...shares.keys()].sort()
  return keys.map((key) => {
    const endpoints = shares.get(key)!
    const { site, rootHost } = endpoints[0]!
    return { site, rootHost, endpoints, seenMs, generation: 'v2' }
  })
}

function cut(problems: readonly string[], host: string): readonly string[] {
  const more = problems.length - PROBLEMS_MAX
  if (more <= 0) return problems
  return [...problems.slice(0, PROBLEMS_MAX), `${host}: and ${more} more`]
}
