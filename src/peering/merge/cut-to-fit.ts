import { DERIVED_ENDPOINTS_MAX } from '../../record/dns-record.ts'
import { endpointOctets, endpointOctetsAtMost } from './endpoint-octets.ts'
import { compareParts, groupBy, type Part } from './part.ts'

/** Endpoints of one site that there is no room for. */
export interface LeftOut {
  readonly site: string
  /** Who told them. */
  readonly exporter: string
  readonly endpoints: number
}

export interface Fitting {
  readonly parts: readonly Part[]
  /** In order of site and teller. */
  readonly leftOut: readonly LeftOut[]
}

/** What there is room for, beside what is our own. */
export interface Room {
  readonly endpoints: number
  readonly octets: number
}

/** Octets of others' endpoints of a host where nobody says how many there may be: 8000 of 500. */
export const OTHERS_OCTETS_MAX = 500 * DERIVED_ENDPOINTS_MAX

type Cost = (part: Part) => number

/**
 * As much of what others tell as there is room for: a function of the set of parts. Each peer gets the same share, and
 * in it each of its sites, so that none pushes others out; what one does not need the others get. Of a site
 * those stay that come first.
 */
export function cutToFit(others: readonly Part[], room: Room): Fitting {
  const counted = siteState(others, room.endpoints, () => 1)
  // Nearly always all fits, and this is enough to know it.
  const atMost = counted.reduce((sum, { endpoint }) => sum + endpointOctetsAtMost(endpoint), 0)
  const octetsOf: Cost = ({ endpoint, generation }) => endpointOctets(endpoint, generation)
  const parts = atMost <= room.octets ? counted : siteState(counted, room.octets, octetsOf)
  return { parts, leftOut: parts === others ? [] : countMissing(others, parts) }
}

/** Those that fit; `parts` itself where all do. */
function siteState(parts: readonly Part[], room: number, costOf: Cost): readonly Part[] {
  const costs = new Map(parts.map((part) => [part, costOf(part)]))
  const sumOf = (members: readonly Part[]): number =>
    members.reduce((sum, part) => sum + costs.get(part)!, 0)
  if (sumOf(parts) <= room) return parts
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

/** What each may have at most, so that all together have no more than `room`, and the small ones all they want. */
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
