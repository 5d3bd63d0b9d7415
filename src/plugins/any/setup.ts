import type { Directive } from '../../plugin/directive.ts'
import { Any } from './any.ts'

/** `any`: a minimal answer to queries of type ANY (RFC 8482). */
export const any: Directive = {
  name: 'any',
  setup(c) {
    while (c.dispenser.next()) {
      if (c.dispenser.nextArg()) throw c.dispenser.argError()
    }
    return { handler: (next) => new Any(next) }
  },
}
