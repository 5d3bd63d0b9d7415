import type { Query } from '../../dns/message/query.ts'
import type { Response } from '../../dns/message/response.ts'
import type { Choice } from '../image/types.ts'

/**
 * Chooses records of a steered RRset for one client. Called once per steered RRset of an answer,
 * also for each step of a CNAME chain. Synchronous; does not allocate. `words[offset]` is the first
 * word of the encoded steering. Raises `response.scopeBits` if it decides by GEO class.
 */
export interface Steerer {
  choose(query: Query, response: Response, words: Uint32Array, offset: number, choice: Choice): void

  /**
   * Reverts the last choice, so that the next choice from the same RRset for the same client is the
   * same. A caller must call it if it made a choice and then leaves the query to another handler.
   * That handler would otherwise make a second draw, and outcomes that both can serve would exceed
   * their weight.
   */
  takeBack(): void
}
