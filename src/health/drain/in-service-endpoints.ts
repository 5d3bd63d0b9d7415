import { printLatin1 } from '../../base/latin1.ts'
import type { Endpoint } from '../../records/dns-record.ts'
import { decideServed } from '../in-service.ts'

/** Endpoints for readers that do not evaluate health. */
export interface InServiceEndpoints {
  /** Only with targets that are in service; those without any are left out. */
  readonly endpoints: readonly Endpoint[]
  /** Names and types whose targets are all out, so that all of them are kept: `groupKey`. */
  readonly kept: ReadonlySet<string>
}

const NONE: ReadonlySet<string> = new Set()

/** Identifies the endpoints of one name and type. */
export function groupKey({ owner, type }: Pick<Endpoint, 'owner' | 'type'>): string {
  return `${printLatin1(owner)} ${type}`
}

/**
 * Leaves out the targets of a record that are down or drained. If all targets of a name and type are, all of them are
 * kept, unless other records have a target in service there. `out`: indexes of these targets, by endpoint.
 */
export function selectEndpoints(
  endpoints: readonly Endpoint[],
  out: readonly ReadonlySet<number>[],
  isElsewhere: (endpoint: Endpoint) => boolean = () => false,
): InServiceEndpoints {
  if (out.every(({ size }) => size === 0)) return { endpoints, kept: NONE }
  const groups = new Map<string, number[]>()
  for (const [i, endpoint] of endpoints.entries()) {
    const key = groupKey(endpoint)
    groups.set(key, [...(groups.get(key) ?? []), i])
  }
  const kept = new Set<string>()
  const left = [...endpoints]
  for (const [key, group] of groups) {
    const served = decideServed(group, (i) => out[i]!.size === endpoints[i]!.rdata.length)
    if (served === 'all' && !isElsewhere(endpoints[group[0]!]!)) {
      kept.add(key)
      continue
    }
    for (const i of group) {
      const endpoint = endpoints[i]!
      left[i] = { ...endpoint, rdata: endpoint.rdata.filter((_, t) => !out[i]!.has(t)) }
    }
  }
  return { endpoints: left.filter(({ rdata }) => rdata.length > 0), kept }
}
