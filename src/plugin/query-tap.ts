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

/** The tap of a server block. */
export const QUERY_TAP = key<QueryTap>('tap of queries and replies')

/** Adds a tap to those of a server block. */
export function addTap(shared: SharedValues, tap: QueryTap): void {
  const other = shared.find(QUERY_TAP)
  shared.provide(QUERY_TAP, other === undefined ? tap : new TapPair(other, tap))
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
