import type { AddressHealth, Finding } from './address-health.ts'

/** The findings of one writer of the table, by id of the probe. */
export class Findings {
  readonly #table: AddressHealth
  readonly #byId = new Map<string, Finding>()

  constructor(table: AddressHealth) {
    this.#table = table
  }

  /** Ids of the probes with a finding. */
  ids(): Iterable<string> {
    return this.#byId.keys()
  }

  /** Replaces the finding of a probe; undefined = it has none. `publish` of the table is not called. */
  set(id: string, finding: Finding | undefined): void {
    const before = this.#byId.get(id)
    if (before !== undefined) this.#table.remove(before)
    if (finding === undefined) this.#byId.delete(id)
    else {
      this.#byId.set(id, finding)
      this.#table.add(finding)
    }
  }

  clear(): void {
    for (const id of [...this.#byId.keys()]) this.set(id, undefined)
  }
}
