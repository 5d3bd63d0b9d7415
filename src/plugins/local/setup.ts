import type { Dispenser } from '../../corefile/dispenser.ts'
import { collectWhileServing } from '../../plugin/collect.ts'
import type { Directive } from '../../plugin/directive.ts'
import { Local } from './local.ts'

/**
 * `local { localhost_prefix on|off }`: answers for localhost and the reverse zones that must not
 * leave a machine.
 */
export const local: Directive = {
  name: 'local',
  setup(c) {
    const d = c.dispenser
    let answersPrefix = true
    while (d.next()) {
      d.noArgs()
      d.eachProperty(() => {
        if (d.value() !== 'localhost_prefix')
          throw d.unknownProperty(d.value(), ['localhost_prefix'])
        answersPrefix = scanSwitch(d)
      })
    }
    const intercepted = c.metrics.counter(
      'coredns_local_localhost_requests_total',
      'Counter of localhost.<domain> requests.',
    )
    const slots = c.counters()
    const collecting = collectWhileServing(c, () => {
      slots.forEach((counts) => {
        intercepted.inc(counts.take(0))
      })
    })
    return [
      {
        handler: (next) => new Local(next, slots, answersPrefix),
        answers: true,
        changesAnswers: answersPrefix,
      },
      collecting,
    ]
  },
}

function scanSwitch(d: Dispenser): boolean {
  const text = d.onlyArg()
  if (text === 'on' || text === 'off') return text === 'on'
  throw d.error(`localhost_prefix expects 'on' or 'off', got ${JSON.stringify(text)}`)
}
