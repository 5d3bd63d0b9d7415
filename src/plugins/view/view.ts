import { EvaluationError, type Term } from '../../plugin/expression/term.ts'
import type { Transaction } from '../../plugin/transaction.ts'

/**
 * Whether a query belongs to the view: every expression is true. An expression without a value
 * counts as false.
 */
export function matchesAll(terms: readonly Term[], tx: Transaction): boolean {
  try {
    return terms.every((term) => term.evaluate(tx) === true)
  } catch (error) {
    if (error instanceof EvaluationError) return false
    throw error
  }
}
