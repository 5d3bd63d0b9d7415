import { RRType } from '../../dns/iana/types.ts'
import { nameKey } from '../../dns/name/name.ts'
import type { Endpoint } from '../../dnsrecord/dns-record.ts'
import { CHAIN_MAX, findDownTargets } from '../down-targets.ts'
import { type EndpointDrain, NO_DRAINS, type RecordDrains } from './drain.ts'

/** The targets of one record that are not candidates, by endpoint. */
export interface OutTargets {
  /** Indexes of the targets that are down. */
  readonly down: readonly ReadonlySet<number>[]
  /** Drains of the other targets that are out, by index; undefined = nothing is drained. */
  readonly drained: readonly ReadonlyMap<number, EndpointDrain>[] | undefined
  /** Indexes of all targets that are out. */
  readonly out: readonly ReadonlySet<number>[]
}

/**
 * Returns the targets of each endpoint of a record that are down or drained. A CNAME whose target
 * is a name of the record with nothing but such targets is out as well. `chainMax`: as in `findDownTargets`.
 */
export function findOutTargets(
  endpoints: readonly Endpoint[],
  downAddresses: readonly string[],
  drains: RecordDrains,
  chainMax = CHAIN_MAX,
): OutTargets {
  const down = findDownTargets(endpoints, downAddresses, [], chainMax)
  if (drains === NO_DRAINS) return { down, drained: undefined, out: down }
  const marks = drains.endpoints
  const out = findDownTargets(endpoints, downAddresses, marks, chainMax)
  const drained = out.map((indexes, i) => {
    const targets = new Map<number, EndpointDrain>()
    for (const index of indexes) {
      const drain = marks[i]?.get(index)
      if (drain !== undefined) targets.set(index, drain)
      else if (!down[i]!.has(index)) {
        const behind = drainBehind(endpoints[i]!.rdata[index]!, endpoints, marks, chainMax)
        if (behind !== undefined) targets.set(index, behind)
      }
    }
    return targets
  })
  return { down, drained, out }
}

/** Returns the first drain of the endpoints that a CNAME leads to. */
function drainBehind(
  target: Uint8Array,
  endpoints: readonly Endpoint[],
  marks: RecordDrains['endpoints'],
  stepsLeft: number,
): EndpointDrain | undefined {
  if (stepsLeft === 0) return undefined
  const owner = nameKey(target)
  const behind = [...endpoints.keys()].filter((i) => nameKey(endpoints[i]!.owner) === owner)
  for (const i of behind) {
    const [drain] = marks[i]?.values() ?? []
    if (drain !== undefined) return drain
  }
  for (const i of behind) {
    const { type, rdata } = endpoints[i]!
    if (type !== RRType.CNAME) continue
    const drain = drainBehind(rdata[0]!, endpoints, marks, stepsLeft - 1)
    if (drain !== undefined) return drain
  }
  return undefined
}
