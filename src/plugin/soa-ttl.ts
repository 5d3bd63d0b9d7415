import { RRType } from '../dns/iana/types.ts'
import type { Response } from '../dns/message/response.ts'
import { Section } from '../dns/message/section.ts'

/** Most seconds if the reply has no SOA. */
const TTL_SECONDS_MAX = 600

/**
 * Returns the most seconds of a record that is made because `response` has no address: the TTL of the SOA in its
 * authority section, else 600 (RFC 6147 section 5.1.7).
 */
export function synthesisTtlSecondsMax(response: Response): number {
  for (let i = 0; i < response.count; i++) {
    const isSoa = response.section[i] === Section.Authority && response.type[i] === RRType.SOA
    if (isSoa) return response.ttlSeconds[i]!
  }
  return TTL_SECONDS_MAX
}
