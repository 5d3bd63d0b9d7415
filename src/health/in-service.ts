/** One endpoint of a name and type. */
interface Servable {
  /** Number of its targets. */
  readonly count: number
  /** True if the target is down or drained. */
  readonly isOut: (index: number) => boolean
}

/**
 * Decides which targets of the endpoints of one name and type are served: those in service, or all if none is, because
 * an answer that may not work is better than none. In place of `all`, RRset building applies the all-down policy. Data
 * for other programs has no such policy. `isOut`: no target of the endpoint is in service.
 */
export function decideServed<M>(
  members: readonly M[],
  isOut: (member: M) => boolean,
): 'in service' | 'all' {
  return members.every(isOut) ? 'all' : 'in service'
}

/** Returns the indexes of the targets that are served, by endpoint, for what other programs serve. */
export function selectInService(members: readonly Servable[]): number[][] {
  const isOut = (member: Servable): boolean => indexesOf(member).every(member.isOut)
  const served = decideServed(members, isOut)
  return members.map((member) => {
    return indexesOf(member).filter((index) => served === 'all' || !member.isOut(index))
  })
}

function indexesOf({ count }: Servable): number[] {
  return Array.from({ length: count }, (_, i) => i)
}
