import type { PeerEndpoint } from '../peer-endpoint.ts'
import { groupBy, type Part, setKey } from './part.ts'

const CNAME = 'CNAME'

/**
 * Returns all parts that are not expired, and some expired ones. An expired part is kept if a name
 * that clients reach would otherwise lose all records of a type: silence alone empties no RRset.
 * Clients reach the host itself, each name that no CNAME leads to, and the targets of CNAMEs that
 * are kept. So the whole branch of a silent site is removed once the branch of another site exists.
 *
 * `hosts`: root hosts without `*.`.
 */
export function chooseParts(parts: readonly Part[], hosts: ReadonlySet<string>): Part[] {
  const chosen = parts.filter((part) => !part.isExpired)
  if (chosen.length === parts.length) return chosen
  const byName = groupBy(parts, (part) => part.endpoint.dnsName)
  const ledTo = new Set(parts.flatMap((part) => targetNames(part.endpoint)))
  const waiting = [...byName.keys()].filter((name) => isEntry(name, hosts) || !ledTo.has(name))
  waiting.push(...chosen.flatMap((part) => targetNames(part.endpoint)))
  const seen = new Set<string>()
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (seen.has(name)) continue
    seen.add(name)
    const held = heldAt(byName.get(name) ?? [])
    chosen.push(...held)
    waiting.push(...held.flatMap((part) => targetNames(part.endpoint)))
  }
  return chosen
}

function isEntry(name: string, hosts: ReadonlySet<string>): boolean {
  return hosts.has(name) || (name.startsWith('*.') && hosts.has(name.slice(2)))
}

function targetNames({ recordType, targets }: PeerEndpoint): readonly string[] {
  return recordType === CNAME ? targets : []
}

/** Returns the expired parts of one name whose types have no live part. */
function heldAt(parts: readonly Part[]): Part[] {
  const live = parts.filter((part) => !part.isExpired)
  const liveSets = new Set(live.map((part) => setKey(part.endpoint)))
  const isAlias = live.some((part) => part.endpoint.recordType === CNAME)
  return parts.filter((part) => {
    if (!part.isExpired || liveSets.has(setKey(part.endpoint))) return false
    // A CNAME excludes other types (RFC 1034 section 3.6.2). The live parts decide which of the two
    // the name has.
    return part.endpoint.recordType === CNAME ? live.length === 0 : !isAlias
  })
}
