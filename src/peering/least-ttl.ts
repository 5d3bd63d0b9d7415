import { RRType } from '../dns/iana/types.ts'
import type { ResourceRecord } from '../dns/message/message.ts'

/** Beyond this a TTL counts as 0 (RFC 2181 section 8). */
const TTL_SECONDS_MAX = 2 ** 31 - 1
/** SOA rdata: two names, of an octet at least, and five numbers, of which the minimum is the last. */
const SOA_OCTETS_MIN = 22
const NUMBER_OCTETS = 4

/** The smallest TTL; undefined = there is none. */
export function leastTtl(of: readonly { readonly ttlSeconds: number }[]): number | undefined {
  let least: number | undefined
  for (const { ttlSeconds } of of) {
    const meant = ttlSeconds > TTL_SECONDS_MAX ? 0 : ttlSeconds
    least = Math.min(least ?? meant, meant)
  }
  return least
}

/**
 * How long an answer without records holds: the lesser of the TTL and the minimum of the SOA beside it (RFC 2308
 * section 5); undefined = there is no SOA.
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
