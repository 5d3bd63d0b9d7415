import type { SelectedCount } from '../../base/telemetry/drain-report.ts'
import type { RecordSource, StoredRecord } from '../../records/record-source.ts'
import type { EndpointDrain } from './drain.ts'
import { findDrains } from './drain-column.ts'
import type { DrainSelector } from './selector.ts'

/** Served records whose endpoints the drains of a file can select. */
interface DrainScope {
  /** Of the drain file; absolute. '' = none. */
  readonly path: string
  /** Identifies where the records come from. */
  readonly source: string
  readonly records: RecordSource
  /** Returns the sites that reported each endpoint of a record, in the record's order. */
  readonly sitesOf: (record: StoredRecord) => readonly (readonly string[])[]
  /** Returns the drains in force that are not in the file. */
  readonly unfiled: () => readonly EndpointDrain[]
}

/** All drain files of the process, with the records that they concern. */
export class DrainIndex {
  readonly #scopes = new Set<DrainScope>()

  /** Returns the function that removes it. */
  add(scope: DrainScope): () => void {
    this.#scopes.add(scope)
    return () => this.#scopes.delete(scope)
  }

  get paths(): readonly string[] {
    return [...new Set([...this.#scopes].map(({ path }) => path))].filter((path) => path !== '')
  }

  /** The drains in force that are in no drain file. */
  get unfiled(): readonly EndpointDrain[] {
    // Blocks and, in a reload, instances have scopes of the same records.
    const drains = [...this.#scopes].flatMap(({ unfiled }) => unfiled())
    return [...new Map(drains.map((drain) => [keyOf(drain), drain])).values()]
  }

  /** Counts the endpoints that a drain in the file would select now. Offers a pause at each record. */
  *count(path: string, selector: DrainSelector): Generator<void, SelectedCount> {
    const drain = { selector, reason: '', actor: '', createdMs: undefined, untilMs: undefined }
    // Blocks and, in a reload, instances have scopes of the same records.
    const scopes = new Map(
      [...this.#scopes].filter((one) => one.path === path).map((one) => [one.source, one]),
    )
    let [endpoints, records] = [0, 0]
    for (const { records: source, sitesOf } of scopes.values()) {
      for (const record of source.records()) {
        yield
        const found = findDrains(record, [drain], () => sitesOf(record)).endpoints
        const selected = found.filter((targets) => targets.size > 0).length
        endpoints += selected
        if (selected > 0) records++
      }
    }
    return { endpoints, records }
  }
}

/** Equal for equal drains. */
function keyOf({ selector, actor, reason, untilMs }: EndpointDrain): string {
  return `${selector.text}\n${untilMs}\n${actor}\n${reason}`
}
