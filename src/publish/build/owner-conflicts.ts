import { plural } from '../../base/plural.ts'
import type { ProblemText } from '../../base/telemetry/problems.ts'
import type { Conflict } from './record-conflicts.ts'

export interface OwnerConflictsOptions {
  /** Called with each new conflict. */
  readonly onConflict: (text: string) => void
  /** False: other sites, or records that are still being read, may have further endpoints. */
  readonly isComplete: (recordKey: string) => boolean
}

/**
 * The conflicts at the names of a zone. A conflict that further endpoints may end is withheld until all
 * of them are known, so that nothing false is reported while records are read and sites converge.
 */
export class OwnerConflicts {
  readonly #options: OwnerConflictsOptions
  /** By owner: those that are reported. */
  readonly #reported = new Map<string, readonly Conflict[]>()
  /** By owner: all conflicts, where one is withheld. */
  readonly #withheld = new Map<string, readonly Conflict[]>()

  constructor(options: OwnerConflictsOptions) {
    this.#options = options
  }

  /** Number of owners with conflicts. */
  get count(): number {
    return this.#reported.size
  }

  /** One problem for each owner with conflicts. `placeOf`: returns where a record is. */
  *problems(placeOf: (recordKey: string) => string): Generator<ProblemText> {
    for (const [first, ...others] of this.#reported.values()) {
      const { text, key } = first!
      const more = others.length === 0 ? '' : ` (and ${plural(others.length, 'more conflict')})`
      yield { place: placeOf(key), object: key, reason: `${text}${more}` }
    }
  }

  all(): Conflict[] {
    return [...this.#reported.values()].flat()
  }

  /** Replaces the conflicts of an owner. */
  note(key: string, conflicts: readonly Conflict[]): void {
    if (conflicts.length === 0) {
      if (this.#reported.size > 0) this.#reported.delete(key)
      if (this.#withheld.size > 0) this.#withheld.delete(key)
      return
    }
    const { onConflict, isComplete } = this.#options
    const due = conflicts.filter((one) => one.isProvisional !== true || isComplete(one.key))
    if (due.length < conflicts.length) this.#withheld.set(key, conflicts)
    else this.#withheld.delete(key)
    const known = new Set(this.#reported.get(key)?.map(({ text }) => text))
    if (due.length === 0) this.#reported.delete(key)
    else this.#reported.set(key, due)
    for (const { text } of due) if (!known.has(text)) onConflict(text)
  }

  /** Reports what was withheld, where all endpoints are known now. */
  recheck(): void {
    for (const [key, conflicts] of [...this.#withheld]) this.note(key, conflicts)
  }
}
