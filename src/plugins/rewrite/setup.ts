import type { Dispenser } from '../../corefile/dispenser.ts'
import type { Directive } from '../../plugin/directive.ts'
import { type OrderedRule, Rewrite } from './rewrite.ts'
import { scanRule } from './scan-rule.ts'

/** `rewrite [continue|stop] FIELD …`: changes queries and their replies. */
export const rewrite: Directive = {
  name: 'rewrite',
  setup(c) {
    const d = c.dispenser
    const rules: OrderedRule[] = []
    while (d.next()) rules.push(scanRule(d, scanArgs(d)))
    return { handler: (next) => new Rewrite(next, rules), changesAnswers: true }
  },
}

/** The arguments of one rule; a block continues them. */
function scanArgs(d: Dispenser): string[] {
  const args = d.remainingArgs()
  if (args.length < 2) while (d.nextBlock()) args.push(d.value(), ...d.remainingArgs())
  else d.noBlock()
  return args
}
