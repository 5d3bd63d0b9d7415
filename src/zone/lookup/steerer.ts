import type { Query } from '../../dns/message/query.ts'
import type { Response } from '../../dns/message/response.ts'
import type { Choice } from '../image/types.ts'

/**
 * Chooses records of a steered RRset for one client. Called once per steered RRset of an answer,
 * also for each step of a CNAME chain. Synchronous; does not allocate. `words[offset]` is the first
 * word of the encoded steering. Raises `response.scopeBits` if it decides by GEO class. For queries with DO, sets
 * `choice.answer`: the signatures of a steered RRset are found by it.
 */
export interface Steerer {
  choose(query: Query, response: Response, words: Uint32Array, offset: number, choice: Choice): void
}
