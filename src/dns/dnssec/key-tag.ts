/** RSA/MD5, whose keys have tags of another kind. */
const RSAMD5 = 1

/** Returns the tag of a key from its DNSKEY rdata (RFC 4034 appendix B). */
export function keyTag(rdata: Uint8Array): number {
  const { length } = rdata
  if (rdata[3] === RSAMD5) return (rdata[length - 3]! << 8) | rdata[length - 2]!
  let sum = 0
  for (let i = 0; i < length; i++) sum += i % 2 === 0 ? rdata[i]! << 8 : rdata[i]!
  return (sum + (sum >>> 16)) & 0xffff
}
