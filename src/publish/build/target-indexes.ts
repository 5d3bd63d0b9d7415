import type { Contribution } from './owner-set.ts'

/** Up to this many targets are compared one by one, because a map costs more. */
const LINEAR_MAX = 16

/** True if a target of an endpoint is down or drained. */
export function isTargetOut({ down, drained }: Contribution, index: number): boolean {
  return down.has(index) || drained?.has(index) === true
}

export function isDrained({ drained }: Contribution): boolean {
  return drained !== undefined && drained.size > 0
}

/** True if all targets of an endpoint are drained. */
export function isWhollyDrained({ endpoint, drained }: Contribution): boolean {
  return endpoint.rdata.every((_, index) => drained?.has(index) === true)
}

/** Which targets serve. An answer that may not work can be better than no answer. */
type ServingTargets = 'in service' | 'not drained' | 'all'

/**
 * Fills `rdata` with the distinct targets that serve, and returns the indexes of each member's
 * targets.
 */
export function indexTargets(
  members: readonly Contribution[],
  serving: ServingTargets,
  rdata: Uint8Array[],
): number[][] {
  let total = 0
  for (const { endpoint } of members) total += endpoint.rdata.length
  const known = total > LINEAR_MAX ? mapOf(rdata) : undefined
  const all: number[][] = []
  for (const member of members) {
    const indexes: number[] = []
    for (const [i, target] of member.endpoint.rdata.entries()) {
      if (serving === 'in service' && isTargetOut(member, i)) continue
      if (serving === 'not drained' && member.drained?.has(i) === true) continue
      const index = indexOf(target, rdata, known)
      if (!indexes.includes(index)) indexes.push(index)
    }
    all.push(indexes)
  }
  return all
}

function mapOf(rdata: readonly Uint8Array[]): Map<string, number> {
  return new Map(rdata.map((one, index) => [Buffer.from(one).toString('latin1'), index]))
}

/** Returns the index of `target` in `rdata`; appends it if it is missing. */
function indexOf(
  target: Uint8Array,
  rdata: Uint8Array[],
  known: Map<string, number> | undefined,
): number {
  if (known === undefined) {
    const index = rdata.findIndex((other) => equalRdata(other, target))
    return index === -1 ? rdata.push(target) - 1 : index
  }
  const key = Buffer.from(target).toString('latin1')
  const index = known.get(key) ?? rdata.push(target) - 1
  known.set(key, index)
  return index
}

/** True if both are the same rdata. */
export function equalRdata(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}
