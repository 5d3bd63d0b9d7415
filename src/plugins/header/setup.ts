import { didYouMean } from '../../base/nearest.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import type { Directive } from '../../plugin/directive.ts'
import { FLAGS, type FlagMask, Header, keepAll, withFlag } from './header.ts'

/** `header { query|response set|clear aa|ra|rd... }`: changes header flags. */
export const header: Directive = {
  name: 'header',
  setup(c) {
    const masks = { query: keepAll, response: keepAll }
    let rules = 0
    while (c.dispenser.next()) {
      c.dispenser.eachProperty(() => {
        scanRule(c.dispenser, masks)
        rules++
      })
    }
    if (rules === 0) throw c.dispenser.argError()
    return { handler: (next) => new Header(next, masks.query, masks.response) }
  },
}

/** One line of the block. Without `query` or `response`, it applies to the response. */
function scanRule(d: Dispenser, masks: { query: FlagMask; response: FlagMask }): void {
  const first = d.value().toLowerCase()
  const isAction = first === 'set' || first === 'clear'
  if (!isAction && first !== 'query' && first !== 'response') {
    throw d.error(`setting up rule: invalid selector=${first} should be query or response`)
  }
  const args = d.remainingArgs()
  const action = (isAction ? first : args.shift())?.toLowerCase()
  if (action === undefined) throw d.error('setting up rule: no flag action provided')
  if (args.length === 0) {
    throw d.error('setting up rule: invalid length for flags, at least one should be provided')
  }
  if (action !== 'set' && action !== 'clear') {
    throw d.error(`setting up rule: unknown flag action=${action}, should be set or clear`)
  }
  const side = first === 'query' ? 'query' : 'response'
  for (const arg of args) {
    const flag = FLAGS.get(arg.toLowerCase())
    if (flag === undefined) {
      const hint = didYouMean(arg, FLAGS.keys())
      throw d.error(`setting up rule: unknown/unsupported flag=${arg.toLowerCase()}${hint}`)
    }
    masks[side] = withFlag(masks[side], flag, action === 'set')
  }
}
