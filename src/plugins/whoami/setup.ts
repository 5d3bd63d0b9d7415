import type { Directive } from '../../plugin/directive.ts'
import { Whoami } from './whoami.ts'

/** `whoami`: answers with the client's own address and port. */
export const whoami: Directive = {
  name: 'whoami',
  setup(c) {
    while (c.dispenser.next()) {
      if (c.dispenser.nextArg()) throw c.dispenser.argError()
    }
    return { handler: () => new Whoami(), answers: true }
  },
}
