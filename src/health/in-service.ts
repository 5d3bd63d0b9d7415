/** One endpoint of a name and type. */
export interface Servable {
  /** Number of its targets. */
  readonly count: number
  /** True if the target is down or drained. */
  readonly isOut: (index: number) => boolean
}

/**
 * Decides which targets of the endpoints of one name and type are in service: those that are not out. If all are out,
 * all of them are, because an answer that may not work is better than none. Returns their indexes by endpoint.
 *
 * For what other programs serve. RRset building decides the same if the all-down policy is `open`; its other policies,
 * and the explanations, need more than the indexes (`src/publish/owner-sets.ts`).
 * test/operator/delegation/facts.test.ts requires that both are equal.
 */
export function selectInService(members: readonly Servable[]): number[][] {
  const select = (accepts: (member: Servable, index: number) => boolean): number[][] => {
    return members.map((member) => {
      return Array.from({ length: member.count }, (_, i) => i).filter((i) => accepts(member, i))
    })
  }
  const left = select((member, index) => !member.isOut(index))
  return left.some((indexes) => indexes.length > 0) ? left : select(() => true)
}
