import { key } from '../base/shared-values.ts'
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
