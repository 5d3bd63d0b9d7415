import type { Failover } from './failover.ts'

/**
 * What clients get when no candidate is left for them: `open`, `closed`, or the set identifier of
 * the endpoint that serves then.
 */
export type AllDownPolicy = string

/** Health and drains are ignored. */
export const OPEN = 'open'
/** The answer is NODATA. */
export const CLOSED = 'closed'

/** How many bits of a client's address a sticky choice depends on. */
export interface StickyPrefix {
  /** 1..32. */
  readonly ipv4Bits: number
  /** 1..64. */
  readonly ipv6Bits: number
}

export const STICKY_DEFAULT: StickyPrefix = { ipv4Bits: 24, ipv6Bits: 56 }
export const STICKY_IPV4_BITS_MAX = 32
export const STICKY_IPV6_BITS_MAX = 64

/** Largest number of endpoints that `answers` may ask for. */
export const ANSWERS_MAX = 64

/** How the candidates of a set compete, apart from their own fields. */
export interface SetRules {
  /** The choice depends on this prefix of the client, and each candidate has a seed; undefined = on draws. */
  readonly sticky?: StickyPrefix | undefined
  /** Lists of the candidates that replace the ladder; undefined = none. */
  readonly failover?: Failover | undefined
  /**
   * A client gets up to this number of endpoints of its tier, 1..ANSWERS_MAX. Undefined = one of a tier with weights.
   * A tier without weights is limited only if it has addresses. Types that allow one record per name ignore it.
   */
  readonly answers?: number | undefined
  /** True = its endpoints serve although all of them are out of service. */
  readonly ignoresHealth?: boolean | undefined
}

/** The order of take-over for the clients of one geo code. */
export interface FailoverLine {
  /** Canonical text of a geo code; `*` = every code without a line of its own. */
  readonly code: string
  /** As written: geo codes in any case (`*` = the default endpoints) and set identifiers; at least one. */
  readonly entries: readonly string[]
}
