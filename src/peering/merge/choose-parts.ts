import type { PeerEndpoint } from '../peer-endpoint.ts'
import { groupBy, type Part, setKey } from './part.ts'

const CNAME = 'CNAME'

/**
 * All parts that are not expired, and of the expired ones those without which a name that clients get to
 * would lose all it has of a type: silence alone empties nothing. Clients get to the host itself, to
 * every name that no CNAME leads to, and to what the CNAMEs that are kept lead to; so the branch of
 * a silent site goes as a whole once there is another one beside it.
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

/** Of the parts of one name: the expired ones of types that have no others. */
function heldAt(parts: readonly Part[]): Part[] {
  const live = parts.filter((part) => !part.isExpired)
  const liveSets = new Set(live.map((part) => setKey(part.endpoint)))
  const isAlias = live.some((part) => part.endpoint.recordType === CNAME)
  return parts.filter((part) => {
    if (!part.isExpired || liveSets.has(setKey(part.endpoint))) return false
    // Nothing stands beside a CNAME (RFC 1034 section 3.6.2): what is alive decides which it is.
    return part.endpoint.recordType === CNAME ? live.length === 0 : !isAlias
  })
}
