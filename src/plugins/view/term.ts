import type { Transaction } from '../../plugin/transaction.ts'

/** What an expression can compute. */
export type Value = number | string | boolean | null | readonly Value[]

export type ValueType = 'number' | 'string' | 'boolean' | 'nil' | 'array'

/**
 * A part of an expression, compiled: its type is known at load, so that types need no look at per
 * query. `evaluate` throws EvaluationError where no value exists.
 */
export interface ViewTerm {
  readonly type: ValueType
  readonly evaluate: (tx: Transaction) => Value
  /** Its value, where it is the same for every query. */
  readonly constant?: Value
  /** The function called with no arguments, where it is such a call. */
  readonly call?: string
}

/** No value for this query: an address that is none, a remainder of zero. The view doesn't match. */
export class EvaluationError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'EvaluationError'
  }
}

export function constantTerm(type: ValueType, value: Value): ViewTerm {
  return { type, evaluate: () => value, constant: value }
}

export function equalValues(a: Value, b: Value): boolean {
  if (a === b) return true
  if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false
  return a.every((item, i) => equalValues(item, b[i]))
}
