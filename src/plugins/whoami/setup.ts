import type { Directive } from '../../plugin/directive.ts'
import { SENDS_LITTLE } from '../../plugin/reply-limiter.ts'
import { Whoami } from './whoami.ts'

/** `whoami`: answers with the client's own address and port. */
export const whoami: Directive = {
  name: 'whoami',
  setup(c) {
    while (c.dispenser.next()) {
      if (c.dispenser.nextArg()) throw c.dispenser.argError()
    }
    c.block.shared.provide(SENDS_LITTLE, true)
    return { handler: () => new Whoami(), answers: true }
  },
}
