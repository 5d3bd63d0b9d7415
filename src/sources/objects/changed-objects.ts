import type { RecordDocument } from '../../records/record-document.ts'
import { type FieldProblem, RefusedError } from '../../records/validate/fields.ts'
import type { ObjectProblem, ObjectRecords, ObjectReference, OnProblem } from './object-kind.ts'

/** Makes the records of an object. Throws RefusedError if it is invalid. */
type MakeRecords = (onProblem: OnProblem) => readonly RecordDocument[]

/** The records of objects that changed since the last call of `take`. */
export class ChangedObjects {
  /** Keys of objects that have records or problems. */
  readonly #held = new Set<string>()
  #changed = new Map<string, ObjectRecords>()

  /** Replaces the records of the object with this key. */
  make(key: string, of: ObjectReference, make: MakeRecords): void {
    const problems = new Map<string, ObjectProblem>()
    const report = (problem: FieldProblem): void => {
      problems.set(`${problem.path.join('.')} ${problem.message}`, { of, ...problem })
    }
    let records: readonly RecordDocument[] | undefined
    try {
      records = make(report)
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error
      report(error.problem)
    }
    this.#set(key, { of, records, problems: [...problems.values()] })
  }

  remove(key: string, of: ObjectReference): void {
    this.#set(key, { of, records: [], problems: [] })
  }

  take(): readonly ObjectRecords[] {
    const changed = [...this.#changed.values()]
    this.#changed = new Map()
    return changed
  }

  #set(key: string, result: ObjectRecords): void {
    const isNothing = result.records?.length === 0 && result.problems.length === 0
    // Most objects of a cluster give nothing.
    if (isNothing && !this.#held.delete(key)) return
    if (!isNothing) this.#held.add(key)
    this.#changed.set(key, result)
  }
}
