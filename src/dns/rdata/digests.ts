/** Octets of each digest type of DS (IANA "DS RR Type Digest Algorithms"). */
const DELEGATION_DIGEST_OCTETS: Readonly<Record<number, number>> = { 1: 20, 2: 32, 3: 32, 4: 48 }
/** Octets of each hash algorithm of ZONEMD: SHA-384 and SHA-512 (RFC 8976 section 5.3). */
const ZONE_DIGEST_OCTETS: Readonly<Record<number, number>> = { 1: 48, 2: 64 }
/** RFC 8976 section 2.2.4. */
const ZONE_DIGEST_OCTETS_MIN = 12

/**
 * Returns what is wrong with the length of the digest of a DS. Such a DS is served, as by Knot DNS
 * and NSD, because its length may be right for a later definition of the type.
 *
 *     DS: key tag u16 | algorithm u8 | digest type u8 | digest
 */
export function delegationDigestFault(
  octets: Uint8Array,
  offset: number,
  rdataOctets: number,
): string | undefined {
  return checkLength('type', octets[offset + 3]!, rdataOctets - 4, DELEGATION_DIGEST_OCTETS)
}

/** ZONEMD: serial u32 | scheme u8 | hash algorithm u8 | digest. */
export function checkZoneDigest(rdata: Uint8Array): string | undefined {
  const octets = rdata.length - 6
  if (octets < ZONE_DIGEST_OCTETS_MIN) return 'a digest has at least 12 octets'
  return checkLength('algorithm', rdata[5]!, octets, ZONE_DIGEST_OCTETS)
}

function checkLength(
  what: string,
  code: number,
  octets: number,
  octetsOf: Readonly<Record<number, number>>,
): string | undefined {
  const want = octetsOf[code]
  if (want === undefined || want === octets) return undefined
  return `a digest of ${what} ${code} has ${want} octets, not ${octets}`
}
