import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { compileWords } from '../../plugin/expression/compile-words.ts'
import type { Term } from '../../plugin/expression/term.ts'
import { matchesAll } from './view.ts'

/** Most expressions of one view. */
const EXPRESSIONS_MAX = 256

/** `view NAME { expr EXPRESSION }`: the block serves only queries for which every expression is true. */
export const view: Directive = {
  name: 'view',
  setup(c) {
    const d = c.dispenser
    const terms: Term[] = []
    while (d.next()) {
      if (c.block.viewName !== '') throw d.error('multiple views defined in server block')
      c.block.viewName = d.onlyArg()
      d.eachProperty(() => terms.push(scanProperty(c, terms.length)))
    }
    const name = c.block.viewName
    c.block.metadata.providers.set('view/name', () => name)
    c.block.filters.push((tx) => matchesAll(terms, tx))
    return {}
  },
}

function scanProperty(c: SetupContext, count: number): Term {
  const d = c.dispenser
  if (d.value() !== 'expr') throw d.unknownProperty(d.value(), ['expr'])
  const args = d.remainingArgs(1)
  if (count === EXPRESSIONS_MAX) throw d.error(`a view has at most ${EXPRESSIONS_MAX} expressions`)
  const term = compileWords(c, args)
  if (term.type !== 'boolean') {
    c.warn(`expression is a ${term.type}, not true or false: the view never matches`, d.position())
  }
  return term
}
