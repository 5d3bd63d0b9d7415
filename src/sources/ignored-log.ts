import type { Logger } from '../base/telemetry/log.ts'
import type { FieldProblem } from '../records/validate/fields.ts'

/** Maximum number of different messages per batch that are logged one by one. */
const LOGGED_MAX = 20
const NOTHING = ''

/** One kind of ignored field in a batch, and the records that have it. */
interface Group {
  /** The message, with the place in the first record. */
  readonly text: string
  count: number
}

/**
 * Logs fields and properties of records that nothing reads: a message once per batch, with the first record and how
 * many have the same. A record that is read again with the same ones is not logged again.
 */
export class IgnoredLog {
  /** The ignored fields of each record, by record key; only records that have such fields. */
  readonly #known = new Map<string, string>()
  /** By message. */
  #batch = new Map<string, Group>()

  /**
   * Notes an ignored field of a record. `print`: returns the message of one field with its place;
   * slow.
   */
  note(
    key: string,
    problems: readonly FieldProblem[],
    print: (problem: FieldProblem) => string,
  ): void {
    if (problems.length === 0) {
      if (this.#known.size > 0) this.#known.delete(key)
      return
    }
    const known = this.#known.get(key) ?? NOTHING
    const messages = new Map(problems.map((problem) => [problem.message, problem]))
    const all = [...messages.keys()].join('\n')
    if (all === known) return
    this.#known.set(key, all)
    const logged = new Set(known.split('\n'))
    for (const [message, problem] of messages) {
      if (logged.has(message)) continue
      const group = this.#batch.get(message)
      if (group !== undefined) group.count++
      // Messages that are not logged one by one do not need the place.
      else {
        const text = this.#batch.size < LOGGED_MAX ? print(problem) : ''
        this.#batch.set(message, { text, count: 1 })
      }
    }
  }

  /** Forgets a record that was removed. */
  forget(key: string): void {
    if (this.#known.size > 0) this.#known.delete(key)
  }

  /** Logs the messages noted since the last call. */
  flush(log: Logger): void {
    if (this.#batch.size === 0) return
    const groups = [...this.#batch.values()]
    this.#batch = new Map()
    for (const { text, count } of groups.slice(0, LOGGED_MAX)) {
      const others = count === 1 ? '' : `; the same in ${count - 1} more records`
      log.warning(`${text}${others}`, 'record-field-ignored')
    }
    const more = groups.length - LOGGED_MAX
    if (more > 0)
      log.warning(
        `and ${more} more kinds of fields that are ignored: see sextant check`,
        'record-field-ignored-more',
      )
  }
}
