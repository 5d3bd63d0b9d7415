import type { Directive } from '../../plugin/directive.ts'

/** `debug`: logs debug lines, and makes a bug in a handler end the process. */
export const debug: Directive = {
  name: 'debug',
  setup(c) {
    while (c.dispenser.next()) {
      if (c.dispenser.nextArg()) throw c.dispenser.argError()
      c.block.debug = true
    }
    return {}
  },
}
