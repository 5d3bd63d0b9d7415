import type { RecordChange, StoredRecord } from '../dnsrecord/record-source.ts'
import type { EndpointDrain } from '../health/drain/drain.ts'
import type { NamesElsewhere } from '../health/drain/drained-targets.ts'
import { DecodedRecord, type RecordForm, type ServedState } from './decoded-record.ts'
import { HOLDERS_MAX, type OwnerHolders } from './owner-holders.ts'
import type { Contribution } from './owner-sets.ts'
import { isTargetOut } from './target-indexes.ts'

/** The records of a zone, as they are served. */
export interface ServedRecords {
  readonly holders: Pick<OwnerHolders, 'of'>
  /** True if targets of the record may be down or drained. */
  readonly isImpaired: (record: StoredRecord) => boolean
  readonly stateOf: (record: StoredRecord) => ServedState
  readonly form: RecordForm
}

/**
 * Returns what the other records of a zone have at names of `record`: a CNAME to such a name works as long as one of
 * all its targets does. It counts for the others only what they have themselves.
 */
export function namesElsewhere(
  record: StoredRecord,
  { holders, isImpaired, stateOf, form }: ServedRecords,
): NamesElsewhere {
  const decoded = new Map<StoredRecord, DecodedRecord>()
  const othersAt = (owner: string): readonly StoredRecord[] => {
    return holders.of(owner).filter((other, i) => other !== record && i < HOLDERS_MAX)
  }
  const find = (owner: string, other: StoredRecord): readonly Contribution[] => {
    const known = decoded.get(other) ?? new DecodedRecord(stateOf(other), form)
    decoded.set(other, known)
    return known.find(owner)?.contributions ?? []
  }
  const has = (owner: string, isOut: (one: Contribution, index: number) => boolean): boolean => {
    return othersAt(owner).some((other) => {
      if (!isImpaired(other)) return true
      const found = find(owner, other)
      return found.some((one) => one.endpoint.rdata.some((_, index) => !isOut(one, index)))
    })
  }
  return {
    isUp: (owner) => has(owner, ({ down }, index) => down.has(index)),
    isServing: (owner) => has(owner, isTargetOut),
    drainOf: (owner): EndpointDrain | undefined => {
      const found = othersAt(owner).filter(isImpaired)
      const drains = found.flatMap((other) =>
        find(owner, other).flatMap(({ drained }) => [...(drained?.values() ?? [])]),
      )
      return drains[0]
    },
  }
}

/**
 * Returns the records with targets out of service that have one of these names, because `namesElsewhere` may change
 * for them; with that name. `changes`: their records are left out.
 */
export function findDependents(
  owners: Iterable<string>,
  changes: readonly RecordChange[],
  { holders, isImpaired, form }: ServedRecords,
): ReadonlyMap<StoredRecord, string> {
  const dependents = new Map<StoredRecord, string>()
  if (form.isLocalForm) return dependents
  const changed = new Set(changes.map(({ before }) => before))
  for (const owner of owners) {
    for (const record of holders.of(owner)) {
      const isOther = !changed.has(record) && !dependents.has(record)
      if (isOther && isImpaired(record)) dependents.set(record, owner)
    }
  }
  return dependents
}
