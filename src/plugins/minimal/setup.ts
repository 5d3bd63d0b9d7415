import type { Directive } from '../../plugin/directive.ts'
import { Minimal } from './minimal.ts'

/** `minimal`: positive answers are sent without authority and additional records. */
export const minimal: Directive = {
  name: 'minimal',
  setup(c) {
    while (c.dispenser.next()) {
      if (c.dispenser.nextArg()) throw c.dispenser.argError()
    }
    return { handler: (next) => new Minimal(next) }
  },
}
