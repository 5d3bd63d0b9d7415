import { RRType } from '../../dns/iana/types.ts'
import { nameKey } from '../../dns/name/name.ts'
import type { Endpoint } from '../../records/dns-record.ts'
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
  let behind: ReadonlyMap<string, EndpointDrain> | undefined
  const drained = out.map((indexes, i) => {
    const targets = new Map<number, EndpointDrain>()
    for (const index of indexes) {
      const drain = marks[i]?.get(index)
      if (drain !== undefined) targets.set(index, drain)
      else if (!down[i]!.has(index)) {
        behind ??= findDrainsBehind(endpoints, marks, chainMax)
        const found = behind.get(nameKey(endpoints[i]!.rdata[index]!))
        if (found !== undefined) targets.set(index, found)
      }
    }
    return targets
  })
  return { down, drained, out }
}

/**
 * Returns by name (`nameKey`) the first drain that a CNAME to the name leads to. The nearest one counts. `chainMax`:
 * as in `findDownTargets`.
 */
function findDrainsBehind(
  endpoints: readonly Endpoint[],
  marks: RecordDrains['endpoints'],
  chainMax: number,
): ReadonlyMap<string, EndpointDrain> {
  const drains = new Map<string, EndpointDrain>()
  const aliases: { readonly owner: string; readonly targets: readonly string[] }[] = []
  for (const [i, { owner, type, rdata }] of endpoints.entries()) {
    const name = nameKey(owner)
    const [drain] = marks[i]?.values() ?? []
    if (drain !== undefined && !drains.has(name)) drains.set(name, drain)
    if (type === RRType.CNAME) aliases.push({ owner: name, targets: rdata.map(nameKey) })
  }
  for (let step = 1; step < chainMax; step++) {
    const found = aliases.flatMap(({ owner, targets }): [string, EndpointDrain][] => {
      const target = targets.find((one) => drains.has(one))
      return target === undefined || drains.has(owner) ? [] : [[owner, drains.get(target)!]]
    })
    if (found.length === 0) break
    for (const [owner, drain] of found) if (!drains.has(owner)) drains.set(owner, drain)
  }
  return chainMax === 0 ? new Map() : drains
}
