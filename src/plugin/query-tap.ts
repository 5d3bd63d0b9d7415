import { key, type SharedValues } from '../base/shared-values.ts'
import type { Transaction } from './transaction.ts'

/** Sees each query of a server block with its reply, as it is sent. */
export interface QueryTap {
  /**
   * Called once per query, after the reply was composed. `octets`: length of the reply, which is at the start of
   * `tx.out`; 0 or less = no reply, or a stream of several messages. @hot
   */
  see(tx: Transaction, octets: number): void
}

/** The tap of a server block, or of all blocks of a Corefile. */
export const QUERY_TAP = key<QueryTap>('tap of queries and replies')

/** Adds a tap to those of a server block, or of all blocks. `shared`: what the block shares, or all of them. */
export function addTap(shared: SharedValues, tap: QueryTap): void {
  shared.provide(QUERY_TAP, joinTaps(shared.find(QUERY_TAP), tap)!)
}

/** Returns a tap that calls both. */
export function joinTaps(
  first: QueryTap | undefined,
  second: QueryTap | undefined,
): QueryTap | undefined {
  if (first === undefined || second === undefined) return first ?? second
  return new TapPair(first, second)
}

class TapPair implements QueryTap {
  readonly #first: QueryTap
  readonly #second: QueryTap

  constructor(first: QueryTap, second: QueryTap) {
    this.#first = first
    this.#second = second
  }

  /** @hot */
  see(tx: Transaction, octets: number): void {
    this.#first.see(tx, octets)
    this.#second.see(tx, octets)
  }
}
