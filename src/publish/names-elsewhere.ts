import type { RecordChange, StoredRecord } from '../dnsrecord/record-source.ts'
import type { EndpointDrain } from '../health/drain/drain.ts'
import type { NamesElsewhere } from '../health/drain/drained-targets.ts'
import { DecodedRecord, type RecordForm } from './decoded-record.ts'
import { HOLDERS_MAX, type OwnerHolders } from './owner-holders.ts'
import type { Contribution } from './owner-sets.ts'
import { type ServedHealth, UNKNOWN, withRecord } from './served-health.ts'
import { isTargetOut } from './target-indexes.ts'

/** The records of a zone, as they are served. */
export class ServedRecords {
  readonly holders: Pick<OwnerHolders, 'of'>
  readonly form: RecordForm
  readonly #healths: ReadonlyMap<string, ServedHealth>
  /** Many records of a name ask for each other. Each with the health that it had then. */
  readonly #decoded = new Map<StoredRecord, readonly [ServedHealth, DecodedRecord]>()

  /** `healths`: by key of the record; missing = UNKNOWN. */
  constructor(
    holders: Pick<OwnerHolders, 'of'>,
    healths: ReadonlyMap<string, ServedHealth>,
    form: RecordForm,
  ) {
    this.holders = holders
    this.form = form
    this.#healths = healths
  }

  /** True if targets of the record may be down or drained. */
  isImpaired({ key }: StoredRecord): boolean {
    return this.#healths.has(key)
  }

  /** Returns what the record itself has, whatever the others have. */
  decode(record: StoredRecord): DecodedRecord {
    const served = this.#healths.get(record.key) ?? UNKNOWN
    const known = this.#decoded.get(record)
    if (known?.[0] === served) return known[1]
    const decoded = new DecodedRecord(withRecord(record, served), this.form)
    this.#decoded.set(record, [served, decoded])
    return decoded
  }

  /** Releases what is decoded. */
  release(): void {
    this.#decoded.clear()
  }
}

/**
 * Returns what the other records of a zone have at names of `record`: a CNAME to such a name works as long as one of
 * all its targets does. It counts for the others only what they have themselves.
 */
export function namesElsewhere(record: StoredRecord, records: ServedRecords): NamesElsewhere {
  const othersAt = (owner: string): readonly StoredRecord[] => {
    const holders = records.holders.of(owner)
    return holders.filter((other, i) => other !== record && i < HOLDERS_MAX)
  }
  const find = (owner: string, other: StoredRecord): readonly Contribution[] => {
    return records.decode(other).find(owner)?.contributions ?? []
  }
  const has = (owner: string, isOut: (one: Contribution, index: number) => boolean): boolean => {
    return othersAt(owner).some((other) => {
      if (!records.isImpaired(other)) return true
      const found = find(owner, other)
      return found.some((one) => one.endpoint.rdata.some((_, index) => !isOut(one, index)))
    })
  }
  return {
    isUp: (owner) => has(owner, ({ down }, index) => down.has(index)),
    isServing: (owner) => has(owner, isTargetOut),
    drainOf: (owner): EndpointDrain | undefined => {
      const found = othersAt(owner).filter((other) => records.isImpaired(other))
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
  records: ServedRecords,
): ReadonlyMap<StoredRecord, string> {
  const dependents = new Map<StoredRecord, string>()
  if (records.form.isLocalForm) return dependents
  const changed = new Set(changes.map(({ before }) => before))
  for (const owner of owners) {
    for (const record of records.holders.of(owner)) {
      const isOther = !changed.has(record) && !dependents.has(record)
      if (isOther && records.isImpaired(record)) dependents.set(record, owner)
    }
  }
  return dependents
}
