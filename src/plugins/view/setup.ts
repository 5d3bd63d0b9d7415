import type { Dispenser } from '../../corefile/dispenser.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { compileExpression } from './expression.ts'
import { ExpressionError } from './lexer.ts'
import type { ViewTerm } from './term.ts'
import { matchesAll } from './view.ts'

const QUOTES_HINT =
  "; the Corefile removes double quotes at the start of a word: write texts as '10.0.0.0/8'"
/** Most expressions of one view. */
const EXPRESSIONS_MAX = 256

/** `view NAME { expr EXPRESSION }`: the block serves only queries for which every expression is true. */
export const view: Directive = {
  name: 'view',
  setup(c) {
    const d = c.dispenser
    const terms: ViewTerm[] = []
    while (d.next()) {
      if (c.block.viewName !== '') throw d.error('multiple views defined in server block')
      c.block.viewName = d.onlyArg()
      d.eachProperty(() => terms.push(scanProperty(c, terms.length)))
    }
    const name = c.block.viewName
    c.block.metadata.set('view/name', () => name)
    c.block.filters.push((tx) => matchesAll(terms, tx))
  },
}

function scanProperty(c: SetupContext, count: number): ViewTerm {
  const d = c.dispenser
  if (d.value() !== 'expr') throw d.unknownProperty(d.value(), ['expr'])
  const args = d.remainingArgs(1)
  if (count === EXPRESSIONS_MAX) throw d.error(`a view has at most ${EXPRESSIONS_MAX} expressions`)
  const term = compile(d, args, c)
  if (term.type !== 'boolean') {
    c.warn(`expression is a ${term.type}, not true or false: the view never matches`, d.position())
  }
  return term
}

function compile(d: Dispenser, args: readonly string[], c: SetupContext): ViewTerm {
  const source = args.join(' ')
  try {
    return compileExpression(source, c.block)
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error
    const hint = d.isQuoted() ? QUOTES_HINT : ''
    throw d.error(`invalid expression: ${error.message}; it was read as ${source}${hint}`)
  }
}
