import { collectWhileServing } from '../../plugin/collect.ts'
import type { Directive } from '../../plugin/directive.ts'
import { Local } from './local.ts'

/** `local`: answers for localhost and the reverse zones that never leave a machine. */
export const local: Directive = {
  name: 'local',
  setup(c) {
    while (c.dispenser.next()) {
      if (c.dispenser.nextArg()) throw c.dispenser.argError()
    }
    const intercepted = c.metrics.counter(
      'coredns_local_localhost_requests_total',
      'Counter of localhost.<domain> requests.',
    )
    const slots = c.counters()
    c.addHandler((next) => new Local(next, slots))
    collectWhileServing(c, () => {
      slots.forEach((counts) => {
        intercepted.inc(counts.take(0))
      })
    })
  },
}
