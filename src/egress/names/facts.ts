import type { AddressFamily } from '../../dns/text/address.ts'

/** What is known about one address of a name. Times are monotonic milliseconds. */
export interface AddressFact {
  readonly family: AddressFamily
  /** In canonical form. */
  readonly address: string
  /** The newest answer with this address; `ttlSeconds` and `chain` are those of this answer. */
  readonly lastSeenMs: number
  readonly ttlSeconds: number
  /** Targets of the CNAME records between the name and the address, in their order. */
  readonly chain: readonly string[]
  /** The latest end of `ttlSeconds` of all answers. */
  readonly endMs: number
}

/**
 * Merges two facts about the same address of the same name: the newest answer and the latest end.
 * Of two answers of one time, the longer TTL counts.
 */
export function mergeAddress(a: AddressFact, b: AddressFact): AddressFact {
  const order = a.lastSeenMs - b.lastSeenMs || a.ttlSeconds - b.ttlSeconds
  return { ...(order < 0 ? b : a), endMs: Math.max(a.endMs, b.endMs) }
}
