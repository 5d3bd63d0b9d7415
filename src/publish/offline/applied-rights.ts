import { runWhole } from '../../base/slices.ts'
import type { HostShare } from '../../records/host-share.ts'
import type { RecordChange, StoredRecord } from '../../records/record-source.ts'
import { RecordRights, type RefusedNames } from '../../sources/record-rights.ts'
import type { ZoneOwnership } from '../../sources/zone-ownership.ts'
import type { PublishOptions } from '../options.ts'
import { isAllowed } from '../zone/zone-content.ts'

/** Which namespaces a block serves, and which ones share hosts. */
interface RightsRules extends Pick<PublishOptions, 'allowedNamespaces'> {
  readonly ownership: ZoneOwnership
  readonly shares: readonly HostShare[]
}

/** All records of a source without the names of other namespaces. */
export class AppliedRights {
  readonly #byKey: Map<string, StoredRecord>
  readonly #rights: RecordRights

  constructor(all: Iterable<StoredRecord>, { ownership, shares, allowedNamespaces }: RightsRules) {
    const byKey = new Map(Array.from(all, (record) => [record.key, record]))
    this.#byKey = byKey
    this.#rights = new RecordRights({
      ownership,
      records: () => byKey.values(),
      find: (key) => byKey.get(key),
      isServed: (record) => isAllowed(record, { allowedNamespaces }),
      shares,
    })
    this.#rights.load()
    this.#build(() => {})
  }

  /** What is served of the records. */
  get records(): readonly StoredRecord[] {
    const records = [...this.#byKey.values()].map((record) => this.#rights.servedOf(record))
    return records.filter((one) => one !== undefined)
  }

  get refused(): readonly RefusedNames[] {
    return this.#rights.refused
  }

  /** Replaces all records. Returns the changes of what is served, one for each record. */
  replace(all: Iterable<StoredRecord>): readonly RecordChange[] {
    const changes: RecordChange[] = []
    const removed = new Map(this.#byKey)
    for (const after of all) {
      const before = removed.get(after.key)
      removed.delete(after.key)
      if (before?.packed !== after.packed) changes.push({ before, after })
    }
    for (const before of removed.values()) changes.push({ before, after: undefined })
    for (const { before, after } of changes) {
      if (after === undefined) this.#byKey.delete(before!.key)
      else this.#byKey.set(after.key, after)
    }
    const served = new Map<string, RecordChange>()
    const note = (some: readonly RecordChange[]): void => {
      for (const change of some) {
        const { key } = (change.after ?? change.before)!
        const { before } = served.get(key) ?? change
        served.set(key, { before, after: change.after })
      }
    }
    note(this.#rights.apply(changes))
    this.#build(note)
    // A record that was added may be refused in the second step.
    return [...served.values()].filter((one) => one.before !== undefined || one.after !== undefined)
  }

  #build(publish: (changes: readonly RecordChange[]) => void): void {
    const work = this.#rights.build(publish)
    if (work !== undefined) runWhole(work)
  }
}
