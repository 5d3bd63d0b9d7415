import { nextOnce } from '../../plugin/arguments/once.ts'
import type { Directive } from '../../plugin/directive.ts'
import { STACK_LOSSES } from '../../transport/udp/reply-stack.ts'

/** `shed`: if UDP replies wait for the socket, the newest is sent first; while too many wait, queries are dropped. */
export const shed: Directive = {
  name: 'shed',
  setup(c) {
    for (let i = 0; nextOnce(c.dispenser, i); i++) {
      c.dispenser.noArgs()
      c.dispenser.noBlock()
    }
    const dropped = c.metrics.counter(
      'coredns_shed_dropped_total',
      'Counter of queries and responses dropped, per server, by reason.',
      ['server', 'reason'],
    )
    let hasStack = false
    c.block.shared.acquire(STACK_LOSSES).push({
      begin: () => {
        hasStack = true
      },
      dropQuery: (server) => dropped.inc({ server, reason: 'query' }),
      dropReply: (server) => dropped.inc({ server, reason: 'response' }),
    })
    return {
      serving: () => {
        if (hasStack) return
        c.log.info(
          'nothing to shed: data threads have no queue of replies; -max-query-age drops late queries',
          'shed-not-needed',
        )
      },
    }
  },
}
