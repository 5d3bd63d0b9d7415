import { RRType } from '../../dns/iana/types.ts'
import { parentName } from '../../dns/name/name.ts'
import type { ZoneRecords } from './records.ts'

/** True if a record of the node has the type. `node`: -1 = none. */
export function hasType(
  { firstRecord, nextRecord, type }: ZoneRecords,
  node: number,
  wanted: number,
): boolean {
  if (node === -1) return false
  for (let i = firstRecord[node]!; i !== -1; i = nextRecord[i]!) if (type[i] === wanted) return true
  return false
}

/**
 * Returns the node above `name` whose NS or DNAME hides it, so that no answer contains data of `name`; -1 = none.
 * `name`: in the zone, lower-case wire form.
 */
export function findHiding(
  records: ZoneRecords,
  name: Uint8Array,
  { octets, node: apexNode }: { readonly octets: number; readonly node: number },
): number {
  if (name.length === octets) return -1
  for (let above = parentName(name); above.length >= octets; above = parentName(above)) {
    const node = records.find(above, above.length)
    if (hasType(records, node, RRType.DNAME)) return node
    if (node !== apexNode && hasType(records, node, RRType.NS)) return node
    if (above.length === octets) return -1
  }
  return -1
}
