import { DERIVED_ENDPOINTS_MAX } from '../../record/dns-record.ts'
import type { Generation, SharedEndpoint, SiteShare } from '../shared-endpoint.ts'
import { sortUnique } from '../shared-form.ts'
import { chooseParts } from './choose-parts.ts'
import { deriveHealth } from './health.ts'
import { joinShares } from './join-shares.ts'
import { compareMerged, type MergeConflict, type MergedEndpoint } from './merged-endpoint.ts'
import { compareParts, groupBy, type Part, setKey } from './part.ts'
import { settleSet } from './settle-set.ts'

/** How long the word of a silent site holds. */
export const EXPIRY_DEFAULT_MS = 24 * 3600 * 1000

/** What this site itself has of a host: as it is now, so it never expires. */
export interface OwnShare {
  readonly site: string
  readonly endpoints: readonly SharedEndpoint[]
}

export interface Merge {
  /** In order; those that are down as well (`dropDown`). */
  readonly endpoints: readonly MergedEndpoint[]
  readonly conflicts: readonly MergeConflict[]
  /** Sites that have been silent for too long and still have endpoints in the merge. */
  readonly heldSites: readonly string[]
  /** When, by the same clock, silence alone will change the merge next; undefined = never. */
  readonly nextExpiryMs: number | undefined
}

/**
 * The endpoints of one host as all sites together have them: a function of the set of shares, whatever
 * their order, and of the time, which only makes silent sites expire. See docs/peers.md for the
 * rules.
 *
 * `own`: what shares say of our own site is passed over. `shares`: all of one host; several of one
 * site count as the newest. `nowMs`: of the clock that `seenMs` was read from.
 */
export function mergeShares(
  own: OwnShare,
  shares: readonly SiteShare[],
  nowMs: number,
  expiryMs: number = EXPIRY_DEFAULT_MS,
): Merge {
  const others = joinShares(shares).filter((share) => share.site !== own.site)
  const isExpired = (share: SiteShare): boolean => nowMs - share.seenMs >= expiryMs
  const ownParts = partsOf(own.endpoints, 'v2', false)
  const otherParts = others.flatMap((share) =>
    partsOf(share.endpoints, share.generation, isExpired(share)),
  )
  const conflicts: MergeConflict[] = []
  const parts = cutToFit(ownParts, otherParts, conflicts)
  const hosts = new Set(parts.map((part) => part.endpoint.rootHost.replace(/^\*\./, '')))
  const chosen = chooseParts(parts, hosts)
  const settled = settleCnames(chosen, conflicts)
  const sets = [...groupBy(settled, (part) => setKey(part.endpoint)).values()]
  const merged = sets.flatMap((members) => settleSet(members, conflicts))
  const held = chosen.filter((part) => part.isExpired).map((part) => part.endpoint.site)
  const live = others.filter((share) => share.endpoints.length > 0 && !isExpired(share))
  const next = live.reduce((earliest, s) => Math.min(earliest, s.seenMs + expiryMs), Infinity)
  return {
    endpoints: deriveHealth(merged).sort(compareMerged),
    conflicts: conflicts.sort((a, b) => (a.text < b.text ? -1 : 1)),
    heldSites: sortUnique(held),
    nextExpiryMs: next === Infinity ? undefined : next,
  }
}

function partsOf(
  endpoints: readonly SharedEndpoint[],
  generation: Generation,
  isExpired: boolean,
): Part[] {
  return endpoints.map((endpoint) => ({ endpoint, generation, isExpired }))
}

/** Beyond what a record has room for, every other site gets the same share, so that none pushes others out. */
function cutToFit(
  own: readonly Part[],
  others: readonly Part[],
  conflicts: MergeConflict[],
): readonly Part[] {
  const room = Math.max(0, DERIVED_ENDPOINTS_MAX - own.length)
  if (others.length <= room) return [...own, ...others]
  const bySite = groupBy(others, (part) => part.endpoint.site)
  const limit = Math.floor(room / bySite.size)
  const taken = [...bySite].flatMap(([site, members]) => {
    if (members.length <= limit) return members
    const text = `${site} has ${members.length} endpoints, too many beside those of ${bySite.size} other sites: only ${limit} are taken`
    conflicts.push({ text, site })
    return members.sort(compareParts).slice(0, limit)
  })
  return [...own, ...taken]
}

/** A name is an alias or has records of its own (RFC 1034 section 3.6.2): the first part decides. */
function settleCnames(parts: readonly Part[], conflicts: MergeConflict[]): Part[] {
  return [...groupBy(parts, (part) => part.endpoint.dnsName)].flatMap(([name, members]) => {
    const isCname = (part: Part): boolean => part.endpoint.recordType === 'CNAME'
    const count = members.filter(isCname).length
    if (count === 0 || count === members.length) return members
    const [first] = [...members].sort(compareParts)
    const kept = members.filter((part) => isCname(part) === isCname(first!))
    for (const site of sortUnique(
      members.filter((part) => !kept.includes(part)).map((part) => part.endpoint.site),
    )) {
      const [wins, loses] = isCname(first!) ? ['CNAME', 'other types'] : ['other types', 'CNAME']
      const text = `${name}: ${wins} of ${first!.endpoint.site} beside ${loses} of ${site}: ${wins} it is`
      conflicts.push({ text, site })
    }
    return kept
  })
}
