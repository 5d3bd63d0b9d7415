import { DERIVED_ENDPOINTS_MAX } from '../../records/dns-record.ts'
import type { PeerEndpoint } from '../peer-endpoint.ts'
import { endpointOctets, endpointOctetsAtMost } from './endpoint-octets.ts'
import { compareParts, groupBy, type Part } from './part.ts'

/** Endpoints of one site that do not fit. */
export interface LeftOut {
  readonly site: string
  /** The peer that reported them. */
  readonly exporter: string
  readonly endpoints: number
}

/** Describes what did not fit, in a text that does not change while the same site is affected. */
export function describeLeftOut(host: string, { site, exporter }: LeftOut): string {
  const by = exporter === site ? '' : `, exported by ${exporter}`
  return `${host} of ${site}${by}: no room for some endpoints of the host; divide them among several hosts`
}

interface Fitting {
  readonly parts: readonly Part[]
  /** In order of site and exporter. */
  readonly leftOut: readonly LeftOut[]
}

/** Room that our own endpoints leave for those of peers. */
export interface Room {
  readonly endpoints: number
  readonly octets: number
}

/**
 * Octets for other sites' endpoints of a host if no limit is given: 8000 endpoints of 500 octets.
 */
export const OTHERS_OCTETS_MAX = 500 * DERIVED_ENDPOINTS_MAX

type Cost = (part: Part) => number

/**
 * Returns as many endpoints of peers as fit: a function of the set of parts. Each peer gets an
 * equal part of the room, and within it each of its sites, so that none displaces others. Room that
 * one peer does not need is divided among the others. Of a site, the first endpoints are kept.
 * `extraOctets`: what is stored of an endpoint beside its form in a spec.
 */
export function cutToFit(
  others: readonly Part[],
  room: Room,
  extraOctets: (endpoint: PeerEndpoint) => number = () => 0,
): Fitting {
  const counted = siteState(others, room.endpoints, () => 1)
  // Nearly always everything fits, and this cheap upper bound shows it.
  const atMost = counted.reduce((sum, { endpoint }) => {
    return sum + endpointOctetsAtMost(endpoint) + extraOctets(endpoint)
  }, 0)
  const octetsOf: Cost = ({ endpoint, generation }) =>
    endpointOctets(endpoint, generation) + extraOctets(endpoint)
  const parts = atMost <= room.octets ? counted : siteState(counted, room.octets, octetsOf)
  return { parts, leftOut: parts === others ? [] : countMissing(others, parts) }
}

/** Returns the parts that fit; `parts` itself if all fit. */
function siteState(parts: readonly Part[], room: number, costOf: Cost): readonly Part[] {
  const each = parts.map(costOf)
  if (each.reduce((sum, cost) => sum + cost, 0) <= room) return parts
  const costs = new Map(parts.map((part, i) => [part, each[i]!]))
  const sumOf = (members: readonly Part[]): number =>
    members.reduce((sum, part) => sum + costs.get(part)!, 0)
  const peers = [...groupBy(parts, ({ exporter }) => exporter).values()]
  const level = levelOf(peers.map(sumOf), room)
  const kept = new Set<Part>()
  for (const exported of peers) {
    const sites = [...groupBy(exported, ({ endpoint }) => endpoint.site).values()]
    const limit = levelOf(sites.map(sumOf), level)
    for (const members of sites) {
      let left = limit
      const ordered = sumOf(members) <= limit ? members : [...members].sort(compareParts)
      for (const part of ordered) {
        const cost = costs.get(part)!
        if (cost > left) continue
        left -= cost
        kept.add(part)
      }
    }
  }
  return parts.filter((part) => kept.has(part))
}

/**
 * Returns the maximum per member such that all together have no more than `room`. Small members get
 * all that they want.
 */
function levelOf(wanted: readonly number[], room: number): number {
  const ordered = [...wanted].sort((a, b) => a - b)
  let left = room
  for (const [i, want] of ordered.entries()) {
    const level = Math.floor(left / (ordered.length - i))
    if (want > level) return level
    left -= want
  }
  return room
}

function countMissing(all: readonly Part[], kept: readonly Part[]): LeftOut[] {
  const stays = new Set(kept)
  const missing = all.filter((part) => !stays.has(part))
  const keyOf = ({ endpoint, exporter }: Part): string => `${endpoint.site} ${exporter}`
  const groups = [...groupBy(missing, keyOf)].sort(([a], [b]) => (a < b ? -1 : 1))
  return groups.map(([, members]) => {
    const { endpoint, exporter } = members[0]!
    return { site: endpoint.site, exporter: exporter, endpoints: members.length }
  })
}
