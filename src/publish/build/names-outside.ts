import { printName } from '../../dns/name/name.ts'
import type { Contribution } from './owner-set.ts'
import { type Conflict, conflictAt } from './record-conflicts.ts'

/** Returns the conflicts of a name outside of the zone: nothing is served there, and each record is reported once. */
export function findOutsideConflicts(
  owner: Uint8Array,
  contributions: readonly Contribution[],
  apex: Uint8Array,
): Conflict[] {
  const records = new Map(contributions.map((one) => [one.key, one]))
  return [...records.values()].map((one) => {
    const text = `${printName(owner)} is outside of zone ${printName(apex)}: the endpoint of ${one.place} is not served; move it to a record of its zone`
    return { ...conflictAt(one, text), isFault: true }
  })
}
