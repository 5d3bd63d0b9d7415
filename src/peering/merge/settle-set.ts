import { quote } from '../../record/validate/fields.ts'
import type { SharedEndpoint, SharedHealth } from '../shared-endpoint.ts'
import { sortUnique } from '../shared-form.ts'
import { joinHealth, type MergeConflict, type MergedEndpoint } from './merged-endpoint.ts'
import { compareParts, type Part } from './part.ts'

/**
 * The endpoints of one name and type out of the parts of all sites; `conflicts` takes each
 * disagreement.
 *
 * - What a v1 peer tells goes where a site that tells whole leads to the same target.
 * - Equal endpoints are one. Endpoints with neither set identifier nor weight nor geo code are united.
 * - One set identifier with different content: the first stays (`compareParts`). Of a later one that
 *   is a default with geo codes these stay, and it is the default no more. A v1 peer's gets another
 *   identifier, since it had none to tell.
 * - The lowest TTL, for all.
 */
export function settleSet(parts: readonly Part[], conflicts: MergeConflict[]): MergedEndpoint[] {
  const ordered = withoutRepeated([...parts].sort(compareParts))
  const isUnited = (part: Part): boolean => isPlain(part.endpoint) && !isCname(part.endpoint)
  const kept = new Map<string, MergedEndpoint>()
  for (const part of ordered) if (!isUnited(part)) keep(part, kept, conflicts)
  const united = unite(ordered.filter(isUnited).map((part) => part.endpoint))
  const merged = [...united, ...kept.values()]
  const ttlSeconds = ordered.reduce((ttl, p) => Math.min(ttl, p.endpoint.ttlSeconds), Infinity)
  return merged.map((endpoint) => ({ ...endpoint, ttlSeconds }))
}

/** Without the targets of v1 peers that a part told whole has as well. */
function withoutRepeated(parts: readonly Part[]): Part[] {
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

function isCname(endpoint: SharedEndpoint): boolean {
  return endpoint.recordType === 'CNAME'
}

/** Nothing tells it apart from others of its name and type. */
function isPlain(e: SharedEndpoint): boolean {
  return e.setIdentifier === '' && e.weight === undefined && !e.isDefault && e.geoCodes.length === 0
}

/** Targets of all, each once, with what is known of its health: down ones in an endpoint of their own. */
function unite(endpoints: readonly SharedEndpoint[]): MergedEndpoint[] {
  const targets = new Map<string, { health: SharedHealth; sites: string[] }>()
  for (const { site, health, targets: told } of endpoints) {
    for (const target of told) {
      const known = targets.get(target)
      if (known === undefined) targets.set(target, { health, sites: [site] })
      else {
        known.health = joinHealth(known.health, health)
        known.sites.push(site)
      }
    }
  }
  const all = [...targets].map(([target, facts]) => ({ target, ...facts }))
  const down = all.filter((t) => t.health === 'down')
  const working = all.filter((t) => t.health !== 'down')
  return [working, down].flatMap((group) => {
    if (group.length === 0) return []
    const isUp = group.every((t) => t.health === 'up')
    const health: SharedHealth = group === down ? 'down' : isUp ? 'up' : 'unknown'
    const sites = sortUnique(group.flatMap((t) => t.sites))
    const united = { ...toMerged(endpoints[0]!), sites, health }
    return [{ ...united, targets: sortUnique(group.map((t) => t.target)) }]
  })
}

function keep(part: Part, kept: Map<string, MergedEndpoint>, conflicts: MergeConflict[]): void {
  for (const candidate of variants(part)) {
    const key = identityKey(candidate)
    const known = kept.get(key)
    if (known === undefined) {
      kept.set(key, toMerged(candidate))
      if (candidate !== part.endpoint && part.generation === 'v2') {
        conflicts.push(describe(part.endpoint, kept, 'it keeps its geo codes only'))
      }
      return
    }
    if (contentKey(known) !== contentKey(candidate)) continue
    const sites = sortUnique([...known.sites, candidate.site])
    kept.set(key, { ...known, sites, health: joinHealth(known.health, candidate.health) })
    return
  }
  conflicts.push(describe(part.endpoint, kept, 'it is left out'))
}

/** What the endpoint may be kept as, best first. */
function variants({ endpoint, generation }: Part): SharedEndpoint[] {
  const { isDefault, geoCodes, targets } = endpoint
  const as = (name: string): SharedEndpoint => ({ ...endpoint, setIdentifier: name })
  if (generation === 'v1') {
    const code = { ...as(geoCodes.join()), isDefault: false }
    const byCode = isDefault && geoCodes.length > 0 ? [code] : []
    return [endpoint, ...byCode, { ...as(targets.join()), isDefault: false }]
  }
  if (!isDefault || geoCodes.length === 0) return [endpoint]
  return [endpoint, { ...as(geoCodes.join()), isDefault: false }]
}

/** Endpoints with a set identifier are told apart by it; steered ones without, by all they say. */
function identityKey(endpoint: SharedEndpoint): string {
  const isNamed = endpoint.setIdentifier !== '' || isPlain(endpoint)
  return isNamed ? `set ${endpoint.setIdentifier}` : `content ${contentKey(endpoint)}`
}

type Content = Pick<MergedEndpoint, 'weight' | 'geoCodes' | 'isDefault' | 'targets'>

function contentKey({ weight, geoCodes, isDefault, targets }: Content): string {
  return JSON.stringify([weight, geoCodes, isDefault, targets])
}

function describe(
  endpoint: SharedEndpoint,
  kept: ReadonlyMap<string, MergedEndpoint>,
  outcome: string,
): MergeConflict {
  const { dnsName, recordType, setIdentifier, site } = endpoint
  const winners = kept.get(identityKey(endpoint))?.sites.join(', ')
  const which = setIdentifier === '' ? 'an endpoint' : `set identifier ${quote(setIdentifier)}`
  const text = `${dnsName} ${recordType}: ${which} of ${site} differs from that of ${winners}: ${outcome}`
  return { text, site }
}

function toMerged(endpoint: SharedEndpoint): MergedEndpoint {
  const { site, rootHost: _, sinceSeconds: __, ...rest } = endpoint
  return { ...rest, sites: [site] }
}
