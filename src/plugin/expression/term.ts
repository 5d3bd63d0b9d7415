import type { Transaction } from '../transaction.ts'

/** The values of expressions. */
export type Value = number | string | boolean | null | readonly Value[]

export type ValueType = 'number' | 'string' | 'boolean' | 'nil' | 'array'

/**
 * A compiled part of an expression. Its type is known at load, so types need no check per query.
 * `evaluate` throws EvaluationError if it has no value.
 */
export interface Term {
  readonly type: ValueType
  readonly evaluate: (tx: Transaction) => Value
  /** Its value, if that is the same for every query. */
  readonly constant?: Value
  /** Name of the function, if the term is a call without arguments. */
  readonly call?: string
}

/** No value for this query: an invalid address, a remainder of zero. */
export class EvaluationError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'EvaluationError'
  }
}

export function constantTerm(type: ValueType, value: Value): Term {
  return { type, evaluate: () => value, constant: value }
}

export function equalValues(a: Value, b: Value): boolean {
  if (a === b) return true
  if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false
  return a.every((item, i) => equalValues(item, b[i]))
}

/** Names that an expression may use beside the functions about the query. */
export interface Scope {
  readonly variables: ReadonlyMap<string, Term>
  /** Returns a group of the regular expression that matched, by name or number; '' = it has none. */
  readonly group: (key: string | number) => string
}
