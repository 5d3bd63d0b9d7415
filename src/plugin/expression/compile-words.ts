import type { SetupContext } from '../directive.ts'
import { compileExpression } from './expression.ts'
import { ExpressionError } from './lexer.ts'
import type { Scope, Term } from './term.ts'

const QUOTES_HINT =
  "; the Corefile removes double quotes at the start of a word: write texts as '10.0.0.0/8'"

/** Compiles the expression that the arguments of the current line are. Throws InputError. */
export function compileWords(
  { dispenser: d, block }: SetupContext,
  words: readonly string[],
  scope?: Scope,
): Term {
  const source = words.join(' ')
  try {
    return compileExpression(source, block, scope)
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error
    const hint = d.isQuoted() ? QUOTES_HINT : ''
    throw d.error(`invalid expression: ${error.message}; it was read as ${source}${hint}`)
  }
}
