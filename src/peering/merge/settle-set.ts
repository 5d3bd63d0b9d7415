import { TARGETS_MAX } from '../../dnsrecord/dns-record.ts'
import { quote } from '../../dnsrecord/validate/fields.ts'
import { CANDIDATES_MAX } from '../../steering/candidate.ts'
import type { EndpointHealth, PeerEndpoint } from '../peer-endpoint.ts'
import { sortUnique } from '../to-peer-endpoint.ts'
import { contentKey, isAlias, isPlain } from './content.ts'
import { fitToOurs } from './fit-to-ours.ts'
import {
  compareMerged,
  joinHealth,
  type MergeConflict,
  type MergedEndpoint,
} from './merged-endpoint.ts'
import { compareInService, isOurs, type Part, setKey } from './part.ts'
import { settleTtl } from './settle-ttl.ts'

/** A merged endpoint while its set is assembled. */
interface Kept {
  readonly merged: MergedEndpoint
  /** This site has the endpoint itself. */
  readonly isOurs: boolean
}

/**
 * Merges the parts of all sites for one name and type; adds each conflict to `conflicts`.
 *
 * - Our own endpoints are unchanged; those of peers are adapted to them (`fitToOurs`).
 * - An endpoint of a v1 peer is left out if a v2 site has the same target.
 * - Equal endpoints are one. Endpoints with neither set identifier nor weight nor geo code are
 *   united.
 * - If a set identifier has different contents, ours is kept, else the first (`compareInService`). A
 *   later default with geo codes keeps its codes, but is not the default. An endpoint of a v1 peer
 *   gets another identifier, since v1 has no identifiers.
 */
export function settleSet(parts: readonly Part[], conflicts: MergeConflict[]): MergedEndpoint[] {
  const label = setKey(parts[0]!.endpoint)
  const sorted = withoutRepeated([...parts].sort(compareInService))
  const ttlSeconds = settleTtl(sorted, label, conflicts)
  const hasOurs = sorted.some(isOurs)
  const ordered = hasOurs ? [...fitToOurs(sorted, label, conflicts)].sort(compareInService) : sorted
  const isUnited = ({ endpoint }: Part): boolean => isPlain(endpoint) && !isAlias(endpoint)
  const kept = new Map<string, Kept>()
  for (const part of ordered) if (!isUnited(part)) keep(part, kept, conflicts)
  const united = unite(ordered.filter(isUnited), label, conflicts)
  const all = [...united, ...kept.values()].map((one) => {
    return { ...one, merged: { ...one.merged, ttlSeconds } }
  })
  return cutCandidates(all, label, conflicts)
}

/** Returns the parts without targets of v1 peers that a v2 part also has. */
export function withoutRepeated(parts: readonly Part[]): Part[] {
  const whole = new Set<string>()
  for (const { generation, endpoint } of parts) {
    if (generation === 'v2') for (const target of endpoint.targets) whole.add(target)
  }
  const rest: Part[] = []
  for (const part of parts) {
    const { endpoint, generation } = part
    if (generation === 'v2') {
      rest.push(part)
      continue
    }
    const targets = endpoint.targets.filter((target) => !whole.has(target))
    if (targets.length > 0) rest.push({ ...part, endpoint: { ...endpoint, targets } })
  }
  return rest
}

/**
 * Joins the known health of an endpoint with that of one more site. For our own endpoints, a peer counts only if we
 * do not know the health, and only if it reports `up`.
 */
function healthWith(
  known: { health: EndpointHealth; isOurs: boolean },
  part: Part,
): EndpointHealth {
  const { health } = part.endpoint
  if (!known.isOurs || isOurs(part)) return joinHealth(known.health, health)
  return known.health === 'unknown' && health === 'up' ? 'up' : known.health
}

/** True if only one of us and the peer finds our endpoint down. */
function disputesHealth(
  known: { health: EndpointHealth; isOurs: boolean },
  { endpoint }: Part,
): boolean {
  return known.isOurs && (known.health === 'down') !== (endpoint.health === 'down')
}

function describeHealth({ site }: PeerEndpoint, label: string): MergeConflict {
  return {
    site,
    text: `${label}: ${site} reports another health of one of our targets: ours is used`,
  }
}

/** Unites the targets of all parts, each once, with its health. Targets that are down get endpoints of their own. */
function unite(parts: readonly Part[], label: string, conflicts: MergeConflict[]): Kept[] {
  const targets = new Map<string, { health: EndpointHealth; sites: string[]; isOurs: boolean }>()
  const disputing = new Map<string, PeerEndpoint>()
  for (const part of parts) {
    const { site, health, targets: reported } = part.endpoint
    for (const target of reported) {
      const known = targets.get(target)
      if (known === undefined) targets.set(target, { health, sites: [site], isOurs: isOurs(part) })
      else {
        if (!isOurs(part) && disputesHealth(known, part)) disputing.set(site, part.endpoint)
        known.health = healthWith(known, part)
        known.sites.push(site)
      }
    }
  }
  for (const endpoint of disputing.values()) conflicts.push(describeHealth(endpoint, label))
  const all = [...targets].map(([target, facts]) => ({ target, ...facts }))
  all.sort((a, b) => (a.target < b.target ? -1 : 1))
  const down = all.filter((t) => t.health === 'down')
  const working = all.filter((t) => t.health !== 'down')
  return [...chunksOf(working), ...chunksOf(down)].map((group) => {
    const isUp = group.every((t) => t.health === 'up')
    const health: EndpointHealth = group[0]!.health === 'down' ? 'down' : isUp ? 'up' : 'unknown'
    const sites = sortUnique(group.flatMap((t) => t.sites))
    const united = { ...toMerged(parts[0]!.endpoint), sites, health }
    return {
      merged: { ...united, targets: group.map((t) => t.target) },
      isOurs: group.some((t) => t.isOurs),
    }
  })
}

/** Splits targets into chunks of as many as an endpoint can have. */
function chunksOf<T>(items: readonly T[]): T[][] {
  const chunks: T[][] = []
  for (let at = 0; at < items.length; at += TARGETS_MAX) {
    chunks.push(items.slice(at, at + TARGETS_MAX))
  }
  return chunks
}

function keep(part: Part, kept: Map<string, Kept>, conflicts: MergeConflict[]): void {
  for (const candidate of variants(part)) {
    const key = identityKey(candidate)
    const known = kept.get(key)
    if (known === undefined) {
      kept.set(key, { merged: toMerged(candidate), isOurs: isOurs(part) })
      if (candidate !== part.endpoint && part.generation === 'v2') {
        conflicts.push(describe(part.endpoint, kept, 'only its geo codes are used'))
      }
      return
    }
    const { merged } = known
    if (contentKey(merged) !== contentKey(candidate)) continue
    const facts = { health: merged.health, isOurs: known.isOurs }
    if (!isOurs(part) && disputesHealth(facts, part)) {
      conflicts.push(describeHealth(candidate, setKey(candidate)))
    }
    const sites = sortUnique([...merged.sites, candidate.site])
    kept.set(key, { ...known, merged: { ...merged, sites, health: healthWith(facts, part) } })
    return
  }
  conflicts.push(describe(part.endpoint, kept, 'it is not served'))
}

/** Returns the forms in which the endpoint may be kept, best first. */
function variants({ endpoint, generation }: Part): PeerEndpoint[] {
  const { isDefault, geoCodes, targets } = endpoint
  const as = (name: string): PeerEndpoint => ({ ...endpoint, setIdentifier: name })
  if (generation === 'v1') {
    const code = { ...as(geoCodes.join()), isDefault: false }
    const byCode = isDefault && geoCodes.length > 0 ? [code] : []
    return [endpoint, ...byCode, { ...as(targets.join()), isDefault: false }]
  }
  if (!isDefault || geoCodes.length === 0) return [endpoint]
  return [endpoint, { ...as(geoCodes.join()), isDefault: false }]
}

/**
 * Returns the identity of an endpoint: its set identifier. Steered endpoints without one are
 * identified by their whole content.
 */
function identityKey(endpoint: PeerEndpoint): string {
  const isNamed = endpoint.setIdentifier !== '' || isPlain(endpoint)
  return isNamed ? `set ${endpoint.setIdentifier}` : `content ${contentKey(endpoint)}`
}

/** Cuts a set to its maximum size: ours are kept first, then the first of the others. */
function cutCandidates(
  all: readonly Kept[],
  label: string,
  conflicts: MergeConflict[],
): MergedEndpoint[] {
  const ordered = [...all].sort((a, b) => {
    if (a.isOurs !== b.isOurs) return a.isOurs ? -1 : 1
    return compareMerged(a.merged, b.merged)
  })
  let candidates = 0
  let targets = 0
  const fitting = ordered.filter(({ merged }) => {
    candidates += merged.geoCodes.length + 1
    targets += merged.targets.length
    return candidates <= CANDIDATES_MAX && targets <= CANDIDATES_MAX
  })
  if (fitting.length < ordered.length) {
    const text = `${label}: ${fitting.length} of ${ordered.length} endpoints of all sites fit`
    conflicts.push({ site: '', text })
  }
  return fitting.map(({ merged }) => merged)
}

function describe(
  endpoint: PeerEndpoint,
  kept: ReadonlyMap<string, Kept>,
  outcome: string,
): MergeConflict {
  const { setIdentifier, site } = endpoint
  const winners = kept.get(identityKey(endpoint))?.merged.sites.join(', ')
  const which = setIdentifier === '' ? 'an endpoint' : `set identifier ${quote(setIdentifier)}`
  const text = `${setKey(endpoint)}: ${which} of ${site} differs from that of ${winners}: ${outcome}`
  return { text, site }
}

function toMerged(endpoint: PeerEndpoint): MergedEndpoint {
  const { site, rootHost: _, sinceSeconds: __, ...rest } = endpoint
  return { ...rest, sites: [site] }
}
