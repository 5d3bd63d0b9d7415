import { RRType } from '../dns/iana/types.ts'
import type { ResourceRecord } from '../dns/message/message.ts'

/** A TTL above this counts as 0 (RFC 2181 section 8). */
const TTL_SECONDS_MAX = 2 ** 31 - 1
/** SOA rdata: two names of at least one octet each, and five numbers. The last number is the minimum. */
const SOA_OCTETS_MIN = 22
const NUMBER_OCTETS = 4

/** Returns the smallest TTL; undefined = the list is empty. */
export function leastTtl(of: readonly { readonly ttlSeconds: number }[]): number | undefined {
  let least: number | undefined
  for (const { ttlSeconds } of of) {
    const meant = ttlSeconds > TTL_SECONDS_MAX ? 0 : ttlSeconds
    least = Math.min(least ?? meant, meant)
  }
  return least
}

/**
 * Returns how long an answer without records is valid: the lesser of the TTL and the minimum of the
 * SOA in the authority section (RFC 2308 section 5). undefined = no SOA.
 */
export function negativeTtl(authority: readonly ResourceRecord[]): number | undefined {
  const soa = authority.find(
    ({ type, rdata }) => type === RRType.SOA && rdata.length >= SOA_OCTETS_MIN,
  )
  if (soa === undefined) return undefined
  const { rdata, ttlSeconds } = soa
  const view = new DataView(rdata.buffer, rdata.byteOffset, rdata.length)
  const minimum = view.getUint32(rdata.length - NUMBER_OCTETS)
  return leastTtl([{ ttlSeconds }, { ttlSeconds: minimum }])
}
