import type { Random } from '../../base/random.ts'
import type { ForwardUpstream } from './forward-upstream.ts'

/** Returns the upstreams in the order in which a query tries them. */
export type Select = (
  upstreams: readonly ForwardUpstream[],
  random: Random,
) => readonly ForwardUpstream[]

/** The values of `policy`. */
export const POLICIES: ReadonlyMap<string, () => Select> = new Map([
  ['random', () => shuffled],
  ['round_robin', roundRobin],
  ['sequential', () => inOrder],
])

const inOrder: Select = (upstreams) => upstreams

const shuffled: Select = (upstreams, random) => {
  if (upstreams.length === 1) return upstreams
  const order = [...upstreams]
  for (let i = order.length - 1; i > 0; i--) {
    const k = random.below(i + 1)
    const other = order[k]!
    order[k] = order[i]!
    order[i] = other
  }
  return order
}

function roundRobin(): Select {
  let first = 0
  return (upstreams) => {
    if (upstreams.length === 1) return upstreams
    first = (first + 1) % upstreams.length
    return [...upstreams.slice(first), ...upstreams.slice(0, first)]
  }
}
