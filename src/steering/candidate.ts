import type { GeoCode } from '../geo/code.ts'
import type { Point } from '../geo/point.ts'
import type { StickySeed } from './sticky.ts'

/** Largest weight of a candidate: 4096 of them still sum up within 32 bits. */
export const WEIGHT_MAX = 1_000_000

/** Maximum of candidates of one set. */
export const CANDIDATES_MAX = 4096

/** Weight of a candidate without a weight in a set where others have one: the default of a DNSPolicy. */
export const WEIGHT_DEFAULT = 120

/** One endpoint of a set. The steerer chooses whole endpoints: a chosen endpoint serves all its rdata. */
export interface Candidate {
  /** The clients that this candidate is for; undefined = no geo code. The code `*` means the same as `isDefault`. */
  readonly code: GeoCode | undefined
  /** True if the candidate also serves clients that no other candidate's code matches (`default=true`). */
  readonly isDefault: boolean
  /** Where it is; undefined = unknown, so it is not chosen by distance. */
  readonly point?: Point | undefined
  /** 0..WEIGHT_MAX, an integer; 0 = standby; undefined = no weight given. */
  readonly weight: number | undefined
  /** 0..2^31-1. */
  readonly ttlSeconds: number
  /** Indexes of the RRset's rdata that are this candidate's targets; at least one. */
  readonly rdataIndexes: readonly number[]
  /** Identifies the endpoint in a sticky set; undefined = the set is not sticky. */
  readonly seed?: StickySeed | undefined
  /** True = its site is silent. */
  readonly isStale?: boolean | undefined
  /** Undefined = no traffic is shifted. All candidates of a set have one, or none has. */
  readonly shift?: CandidateShift | undefined
}

/** The part of a candidate in a shift of traffic to some endpoints of its set. */
export interface CandidateShift {
  /** True: the traffic moves to this candidate. */
  readonly isTarget: boolean
  /** The targets' common share of each tier that has other candidates too; above 0, up to 100. */
  readonly percent: number
}
