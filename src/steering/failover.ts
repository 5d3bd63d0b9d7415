import type { GeoCode } from '../geo/code.ts'
import type { Candidate } from './candidate.ts'

/** One place in the order of a failover list. */
export interface FailoverGroup {
  /** A geo code, `*`, or the set identifier of an endpoint. */
  readonly name: string
  /** True: `name` is a set identifier. Such a group serves even if it is a standby. */
  readonly isIdentifier: boolean
  /** Candidates in service; empty = none is left. */
  readonly members: readonly Candidate[]
}

/** The order in which groups of candidates serve the clients of one geo code. */
export interface FailoverList {
  /** Undefined = the clients that no code of the set matches. */
  readonly code: GeoCode | undefined
  /** At least two; the first one has the candidates of the code itself. */
  readonly groups: readonly FailoverGroup[]
}

/** The failover lists of a set. */
export interface Failover {
  /** At least one; each code once. */
  readonly lists: readonly FailoverList[]
  /** Serve where no group of a list has a member; empty = the answer is NODATA. */
  readonly exhausted: readonly Candidate[]
}

/**
 * Returns the first group with a candidate that is more than a standby, or else the first one with a
 * candidate. Undefined = the list is exhausted.
 */
export function servingGroup({ groups }: FailoverList): FailoverGroup | undefined {
  const serves = ({ members, isIdentifier }: FailoverGroup): boolean => {
    return isIdentifier ? members.length > 0 : members.some(({ weight }) => weight !== 0)
  }
  return groups.find(serves) ?? groups.find(({ members }) => members.length > 0)
}

/** Returns the candidates that serve the clients of a list. */
export function servingMembers(list: FailoverList, { exhausted }: Failover): readonly Candidate[] {
  return servingGroup(list)?.members ?? exhausted
}
