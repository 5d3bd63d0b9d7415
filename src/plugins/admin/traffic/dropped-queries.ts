import { Rcode } from '../../../dns/iana/rcodes.ts'
import type { ServerCounters } from '../../../plugin/server-counters.ts'
import { COLUMNS, DROPPED } from './columns.ts'

/** The growth of what the server counts of queries that reach no server block. */
export class DroppedQueries {
  readonly #server: ServerCounters
  #taken: Float64Array

  /** Counts from now on. */
  constructor(server: ServerCounters) {
    this.#server = server
    this.#taken = this.#now()
  }

  /** Adds the growth since the last call to a row. */
  addTo(row: Float64Array): void {
    const now = this.#now()
    for (let i = 0; i < COLUMNS; i++) row[i]! += now[i]! - this.#taken[i]!
    this.#taken = now
  }

  #now(): Float64Array {
    const row = new Float64Array(COLUMNS)
    const { dropped, losses } = this.#server
    for (const { formErr, notImp, badVers, refused } of dropped.values()) {
      row[Rcode.FORMERR]! += formErr
      row[Rcode.NOTIMP]! += notImp
      row[Rcode.BADVERS]! += badVers
      row[Rcode.REFUSED]! += refused
    }
    const { overloaded = 0, unbuffered = 0, late = 0 } = losses
    row[DROPPED] = overloaded + unbuffered + late
    return row
  }
}
