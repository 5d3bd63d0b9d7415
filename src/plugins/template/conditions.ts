import { EvaluationError, type Scope, type Term, type Value } from '../../plugin/expression/term.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { groupNumber } from './go-template.ts'

/** What `Conditions.check` says of a query that the regular expressions match. */
export const Verdict = {
  True: 0,
  /** As if no regular expression matched. */
  False: 1,
  /** A variable or a condition has no value: SERVFAIL. */
  Failed: 2,
} as const
export type Verdict = (typeof Verdict)[keyof typeof Verdict]

const NO_VALUES: ReadonlyMap<string, string> = new Map()

/**
 * The variables (`var`) and conditions (`expr`) of a template. Expressions are evaluated at once, so one set of groups
 * and values is enough for all queries.
 */
export class Conditions implements Scope {
  readonly variables = new Map<string, Term>()
  readonly #definitions: { readonly name: string; readonly term: Term }[] = []
  readonly #conditions: Term[] = []
  readonly #values: Value[] = []
  #match: readonly string[] = []
  #groupNames: readonly string[] = []
  readonly group = (key: string | number): string => {
    const named = typeof key === 'string' ? this.#groupNames.lastIndexOf(key) : key
    return this.#match[named === -1 ? groupNumber(String(key)) : named] ?? ''
  }

  /** Adds a variable; later expressions may use it. */
  define(name: string, term: Term): void {
    const index = this.#definitions.length
    this.#definitions.push({ name, term })
    this.variables.set(name, { type: term.type, evaluate: () => this.#values[index]! })
  }

  require(term: Term): void {
    this.#conditions.push(term)
  }

  /** Evaluates the variables, then the conditions. */
  check(tx: Transaction, match: readonly string[], groupNames: readonly string[]): Verdict {
    if (this.#definitions.length === 0 && this.#conditions.length === 0) return Verdict.True
    this.#match = match
    this.#groupNames = groupNames
    try {
      this.#definitions.forEach(({ term }, i) => {
        this.#values[i] = term.evaluate(tx)
      })
      const holds = this.#conditions.every((term) => term.evaluate(tx) === true)
      return holds ? Verdict.True : Verdict.False
    } catch (error) {
      if (error instanceof EvaluationError) return Verdict.Failed
      throw error
    }
  }

  /** The values of the variables for the query that was checked last, as Go prints them. */
  printed(): ReadonlyMap<string, string> {
    if (this.#definitions.length === 0) return NO_VALUES
    return new Map(this.#definitions.map(({ name }, i) => [name, printValue(this.#values[i]!)]))
  }
}

function printValue(value: Value): string {
  if (value === null) return '<nil>'
  return Array.isArray(value) ? `[${value.map(printValue).join(' ')}]` : String(value)
}
