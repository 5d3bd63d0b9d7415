import { DERIVED_ENDPOINTS_MAX } from '../../dnsrecord/dns-record.ts'
import type { PeerEndpoint, SiteState } from '../peer-endpoint.ts'
import { sortUnique } from '../to-peer-endpoint.ts'
import { cutToFit, type LeftOut, OTHERS_OCTETS_MAX } from './cut-to-fit.ts'
import { deriveHealth } from './health.ts'
import { compareMerged, type MergeConflict, type MergedEndpoint } from './merged-endpoint.ts'
import { compareInService, compareParts, groupBy, isOurs, type Part, setKey } from './part.ts'
import { settleSet, withoutRepeated } from './settle-set.ts'

/** Maximum of reported conflicts per host. */
const CONFLICTS_MAX = 100

/** This site's own endpoints of a host. They are current, so they never expire. */
export interface OwnState {
  readonly endpoints: readonly PeerEndpoint[]
  /** Octets of JSON for the endpoints of others; absent = four megabytes. */
  readonly roomOctets?: number
  /** Targets of our own that our probes found down; includes those of `endpoints` with health `down`. */
  readonly down?: readonly string[]
  /** Addresses of peers that are out of service. */
  readonly foreignDown?: ReadonlySet<string>
}

export interface Merge {
  /** In order; includes endpoints that are down (`dropDown`). */
  readonly endpoints: readonly MergedEndpoint[]
  /** What the peers add, each endpoint as reported: without what is expired or does not fit. In order. */
  readonly reported: readonly Part[]
  readonly conflicts: readonly MergeConflict[]
  /** Endpoints that did not fit; `conflicts` lists them too. */
  readonly leftOut: readonly LeftOut[]
}

/**
 * Returns the endpoints of one host as this site serves them: its own, unchanged, and those that
 * the peers add. The result depends on our own endpoints, and on the set of site states in any
 * order. Sites without a conflict get the same result. See docs/explanation/peers.md for the rules.
 *
 * `others`: all of one host, as `chooseOthers` returns them.
 */
export function mergeSiteStates(own: OwnState, others: readonly SiteState[]): Merge {
  const about = { generation: 'v2', exporter: '' } as const
  const ownParts = own.endpoints.map((endpoint) => ({ endpoint, ...about }))
  const fitting = cutToFit(others.flatMap(partsOf), {
    endpoints: Math.max(0, DERIVED_ENDPOINTS_MAX - ownParts.length),
    octets: own.roomOctets ?? OTHERS_OCTETS_MAX,
  })
  const conflicts: MergeConflict[] = []
  const down = new Set(own.down ?? [])
  const parts = [...ownParts, ...fitting.parts]
  const known = parts.flatMap((part) => {
    return isOurs(part) ? [part] : withoutDown(part, down, own.foreignDown, conflicts)
  })
  const settled = settleCnames(known, conflicts)
  const sets = [...groupBy(settled, (part) => setKey(part.endpoint)).values()]
  const merged = sets.flatMap((members) => settleSet(members, conflicts))
  return {
    endpoints: deriveHealth(merged).sort(compareMerged),
    reported: listReported(parts),
    conflicts: [...fitting.leftOut.map(describeLeftOut), ...cutConflicts(conflicts)],
    leftOut: fitting.leftOut,
  }
}

/** What v1 peers report of targets that a v2 peer has, too, is left out. In order. */
function listReported(parts: readonly Part[]): readonly Part[] {
  const sets = [...groupBy(parts, (part) => setKey(part.endpoint)).values()]
  return sets
    .flatMap(withoutRepeated)
    .filter((part) => !isOurs(part))
    .sort(compareParts)
}

function partsOf({ endpoints, generation, exporter }: SiteState): Part[] {
  return endpoints.map((endpoint) => ({ endpoint, generation, exporter }))
}

/** Our own probes decide whether an address of ours is up, also if a peer advertises the same address. */
function withoutDown(
  part: Part,
  down: ReadonlySet<string>,
  foreignDown: ReadonlySet<string> | undefined,
  conflicts: MergeConflict[],
): Part[] {
  const { endpoint } = part
  if (endpoint.health === 'down') return [part]
  const isLeft = (target: string): boolean => !down.has(target) && foreignDown?.has(target) !== true
  const targets = endpoint.targets.filter(isLeft)
  if (targets.length === endpoint.targets.length) return [part]
  const { site } = endpoint
  const text = `${setKey(endpoint)}: ${site} reports another health of one of our targets: ours is used`
  const isOurTarget = endpoint.targets.some((target) => down.has(target))
  if (isOurTarget && !conflicts.some((known) => known.text === text)) conflicts.push({ site, text })
  if (targets.length > 0) return [{ ...part, endpoint: { ...endpoint, targets } }]
  return [{ ...part, endpoint: { ...endpoint, health: 'down' } }]
}

/** Describes what did not fit, in a text that does not change while the same site is affected. */
function describeLeftOut({ site, exporter }: LeftOut): MergeConflict {
  const by = exporter === site ? '' : `, exported by ${exporter}`
  const text = `${site}${by}: too many endpoints beside those of the other sites; the rest is not served`
  return { text, site }
}

/** Returns the first hundred conflicts, and how many more exist. */
function cutConflicts(conflicts: MergeConflict[]): readonly MergeConflict[] {
  conflicts.sort((a, b) => (a.text < b.text ? -1 : 1))
  const more = conflicts.length - CONFLICTS_MAX
  if (more <= 0) return conflicts
  return [
    ...conflicts.slice(0, CONFLICTS_MAX),
    { text: `and ${more} more disagreements`, site: '' },
  ]
}

/** A name is an alias or has records of its own (RFC 1034 section 3.6.2): the first part decides. */
function settleCnames(parts: readonly Part[], conflicts: MergeConflict[]): Part[] {
  return [...groupBy(parts, (part) => part.endpoint.dnsName)].flatMap(([name, members]) => {
    const isCname = (part: Part): boolean => part.endpoint.recordType === 'CNAME'
    const count = members.filter(isCname).length
    if (count === 0 || count === members.length) return members
    const [first] = [...members].sort(compareInService)
    const kept = members.filter((part) => isCname(part) === isCname(first!))
    const yielding = members.filter((part) => isCname(part) !== isCname(first!))
    for (const site of sortUnique(yielding.map((part) => part.endpoint.site))) {
      const [wins, loses] = isCname(first!) ? ['CNAME', 'other types'] : ['other types', 'CNAME']
      const text = `${name}: ${wins} of ${first!.endpoint.site} beside ${loses} of ${site}: ${wins} is served`
      conflicts.push({ text, site })
    }
    return kept
  })
}
