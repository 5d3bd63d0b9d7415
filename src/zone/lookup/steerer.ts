import type { Query } from '../../dns/message/query.ts'
import type { Response } from '../../dns/message/response.ts'
import type { Choice } from '../image/types.ts'

/**
 * Picks records of a steered RRset for one client. Called once per steered RRset of an answer, each
 * step of a CNAME chain included. Synchronous, allocates nothing. `words[offset]` is the first
 * steering word of the RRset. Where a GEO decision was taken it raises `response.scopeBits`.
 */
export interface Steerer {
  choose(query: Query, response: Response, words: Uint32Array, offset: number, choice: Choice): void

  /**
   * Takes the last choice back, so that the next one of the same RRset for the same client is the same. Who chose
   * and then leaves the query to another must say so: what that chooses would be another draw, and outcomes
   * that both can serve would come more often than their weight says.
   */
  takeBack(): void
}
