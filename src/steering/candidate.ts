import type { GeoCode } from '../geo/code.ts'

/** Largest weight of a candidate: 4096 of them still sum up within 32 bits. */
export const WEIGHT_MAX = 1_000_000

/** Most candidates of one set. */
export const CANDIDATES_MAX = 4096

/** Weight of a candidate that has none, among others that have: what a DNSPolicy writes by default. */
export const WEIGHT_DEFAULT = 120

/** One endpoint of a set: the unit of choice. Choosing it serves all its rdata. */
export interface Candidate {
  /** Whom it is for; undefined = no geo code. The code `*` says the same as `isDefault`. */
  readonly code: GeoCode | undefined
  /** Also for clients that no other candidate's code matches (`default=true`). */
  readonly isDefault: boolean
  /** 0..WEIGHT_MAX, an integer; 0 = standby; undefined = none given. */
  readonly weight: number | undefined
  /** 0..2^31-1. */
  readonly ttlSeconds: number
  /** Which rdata of the RRset are its targets; at least one. */
  readonly rdataIndexes: readonly number[]
}
