import { printLatin1 } from '../../base/latin1.ts'
import { unpackNames } from '../../records/pack.ts'
import type { StoredRecord } from '../../records/record-source.ts'

/** Up to this many owners are compared one by one, because a set costs more. */
const LINEAR_MAX = 8
/** Maximum number of records and CNAMEs that an `CnameReader` holds. */
const READ_MAX = 100_000
const NONE: readonly string[] = []

/**
 * For each name of a zone: the records that have a CNAME to it, but not the name itself. Names are `lowerNameKey`. New
 * records are sorted in at the next lookup, so that filling a zone costs no more.
 */
export class CnameIndex {
  readonly #apexKey: string
  /** Nearly always one record per name. */
  readonly #byTarget = new Map<string, StoredRecord | Set<StoredRecord>>()
  /** Records that are not in the map yet. */
  #added: StoredRecord[]

  /** `apex`: lower-case wire form. */
  constructor(apex: Uint8Array, records: Iterable<StoredRecord>) {
    this.#apexKey = printLatin1(apex)
    this.#added = [...records]
  }

  /** Returns the records with CNAMEs to a name. */
  of(name: string): Iterable<StoredRecord> {
    this.#sortIn()
    const records = this.#byTarget.get(name)
    if (records === undefined) return []
    return records instanceof Set ? records : [records]
  }

  add(record: StoredRecord): void {
    this.#added.push(record)
  }

  drop(record: StoredRecord): void {
    this.#sortIn()
    for (const target of this.targetsOf(record)) {
      const records = this.#byTarget.get(target)
      if (records instanceof Set) records.delete(record)
      if (records === record || (records instanceof Set && records.size === 0)) {
        this.#byTarget.delete(target)
      }
    }
  }

  /** Returns the names under which the index lists a record. May repeat. */
  targetsOf({ packed }: StoredRecord): readonly string[] {
    const { owners, cnames } = unpackNames(packed)
    const known = owners.length > LINEAR_MAX ? new Set(owners) : undefined
    const targets: string[] = []
    for (const [target] of cnames) {
      const isOwn = known === undefined ? owners.includes(target) : known.has(target)
      if (!isOwn && target.endsWith(this.#apexKey)) targets.push(target)
    }
    return targets
  }

  #sortIn(): void {
    for (const record of this.#added) {
      for (const target of this.targetsOf(record)) {
        const records = this.#byTarget.get(target)
        if (records === undefined) this.#byTarget.set(target, record)
        else if (records instanceof Set) records.add(record)
        else this.#byTarget.set(target, new Set([records, record]))
      }
    }
    this.#added = []
  }
}

/**
 * Finds the owners of CNAMEs that lead to a name. It unpacks each record once until `forget`, because a name that dies
 * may be one of a thousand of a record.
 */
export class CnameReader {
  readonly #known = new Map<StoredRecord, ReadonlyMap<string, readonly string[]>>()
  #size = 0

  /** Returns the owners of the CNAMEs of a record that lead to a name. */
  ownersTo(name: string, record: StoredRecord): readonly string[] {
    return this.#read(record).get(name) ?? NONE
  }

  forget(): void {
    this.#known.clear()
    this.#size = 0
  }

  #read(record: StoredRecord): ReadonlyMap<string, readonly string[]> {
    const known = this.#known.get(record)
    if (known !== undefined) return known
    const { owners, cnames } = unpackNames(record.packed)
    const byTarget = new Map<string, string[]>()
    for (const [target, index] of cnames) {
      const others = byTarget.get(target)
      if (others === undefined) byTarget.set(target, [owners[index]!])
      else others.push(owners[index]!)
    }
    this.#size += 1 + cnames.length
    if (this.#size > READ_MAX) this.forget()
    this.#known.set(record, byTarget)
    return byTarget
  }
}
