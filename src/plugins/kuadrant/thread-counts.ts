import type { SetupContext } from '../../plugin/directive.ts'
import type { ThreadCounts } from '../../publish/zone/endpoint-counters.ts'
import { FIRST_COUNTER } from '../../steering/outcome-counters.ts'

/** Returns the counters of a block's endpoints. Every thread that answers has `max` of them. */
export function threadCounts(c: SetupContext, max: number): ThreadCounts {
  const slots = c.counters()
  slots.length = FIRST_COUNTER + max
  return {
    // The labels of the series name more than a server block.
    own: () => slots.at('', '', ''),
    take: (number) => {
      let growth = 0
      slots.forEach((counts) => {
        growth += counts.take(number)
      })
      return growth
    },
  }
}
