import { printType, RRType } from '../dns/iana/types.ts'
import { printName } from '../dns/name/name.ts'
import { printRdata } from '../dns/rdata/index.ts'
import type { ExplainableZones } from '../publish/explainable.ts'
import type { BuiltSet } from './endpoints.ts'

/** Targets that an explanation lists one by one. */
const LISTED_MAX = 20

/**
 * Returns a note for each target of a merged set that some site found down. Those that are not served are not among
 * the endpoints of the set.
 */
export function notesOnHealth(
  zones: ExplainableZones,
  owner: Uint8Array,
  { endpoints }: BuiltSet,
  type: number,
): string[] {
  const name = printName(owner).slice(0, -1)
  const [dnsName, recordType] = [name.toLowerCase(), printType(type)]
  const found = zones.healthOf(dnsName).filter((one) => {
    return one.dnsName === dnsName && one.recordType === recordType
  })
  if (found.length === 0) return []
  const served = new Set(
    endpoints.flatMap(({ contribution: { endpoint } }) => {
      return endpoint.rdata.map((rdata) => printRdata(endpoint.type, rdata))
    }),
  )
  const notes = found.map(({ target, site, reason, recordKey }) => {
    const text = type === RRType.CNAME ? `${target}.` : target
    const why = reason || `down: ${zones.downReason(recordKey, target) || 'see the record'}`
    return `${text} of ${site} is ${served.has(text) ? 'served' : 'left out'}: ${why}`
  })
  const unique = [...new Set(notes)]
  const more = unique.length - LISTED_MAX
  return more <= 0 ? unique : [...unique.slice(0, LISTED_MAX), `and ${more} more such targets`]
}
