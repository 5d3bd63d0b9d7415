import * as options from '../iana/options.ts'
import type { Query } from '../message/query.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { OptionCode } = options

const IPV4 = 1
const IPV6 = 2
/** Family, source bits and scope bits, which come before the address. */
const ECS_FIXED_OCTETS = 4
/** DO, the highest of the flags that follow the version (RFC 3225). */
const DNSSEC_OK = 0x80

/**
 * Parses an OPT record (RFC 6891 section 6.1.2) into `query`. `fixed`: offset of its type field in
 * `query.packet`; its ten fixed octets and `rdataOctets` of rdata are inside the packet. Returns
 * false if an option is malformed; `query` then keeps the options read so far.
 */
export function parseOpt(query: Query, fixed: number, rdataOctets: number): boolean {
  const packet = query.packet
  query.hasEdns = true
  query.payloadOctets = (packet[fixed + 2]! << 8) | packet[fixed + 3]!
  query.ednsVersion = packet[fixed + 5]!
  query.dnssecOk = (packet[fixed + 6]! & DNSSEC_OK) !== 0
  // Options of another version may have another format.
  return query.ednsVersion !== 0 || parseOptions(query, fixed + 10, fixed + 10 + rdataOctets)
}

/** If an option occurs twice, the first one counts (RFC 7873 section 4 requires it for cookies). */
function parseOptions(query: Query, start: number, end: number): boolean {
  const packet = query.packet
  let seenEcs = false
  let at = start
  while (at < end) {
    if (at + 4 > end) return false
    const code = (packet[at]! << 8) | packet[at + 1]!
    const octets = (packet[at + 2]! << 8) | packet[at + 3]!
    at += 4
    if (at + octets > end) return false
    if (code === OptionCode.ECS) {
      if (!seenEcs && !parseEcs(query, at, octets)) return false
      seenEcs = true
    } else if (code === OptionCode.COOKIE) {
      if (query.cookieOctets === 0 && !parseCookie(query, at, octets)) return false
    } else if (code === OptionCode.NSID) {
      query.nsidRequested = true
    } else if (code === OptionCode.KEEPALIVE) {
      // Only replies may have a timeout: RFC 7828 section 3.2.1.
      if (octets !== 0) return false
      query.keepaliveRequested = true
    }
    at += octets
  }
  return true
}

/** Parses a client cookie of 8 octets, alone or with a server cookie of 8..32: RFC 7873 section 5.2.2. */
function parseCookie(query: Query, at: number, octets: number): boolean {
  if (octets !== 8 && (octets < 16 || octets > 40)) return false
  query.cookieOffset = at
  query.cookieOctets = octets
  return true
}

/**
 * Parses a client subnet (RFC 7871 section 6). Returns false if section 7.2.1 requires FORMERR: a
 * family other than IPv4 or IPv6, a scope in a query, a prefix longer than the address, an address
 * longer or shorter than the prefix needs, or bits behind the prefix. Without a prefix the family
 * does not matter (section 7.1.2). dig writes 0 for `+subnet=0`; the reply then has it too.
 */
function parseEcs(query: Query, at: number, octets: number): boolean {
  if (octets < ECS_FIXED_OCTETS) return false
  const packet = query.packet
  const family = (packet[at]! << 8) | packet[at + 1]!
  const sourceBits = packet[at + 2]!
  if (packet[at + 3] !== 0) return false
  if (family === 0) {
    query.hasEcs = sourceBits === 0 && octets === ECS_FIXED_OCTETS
    return query.hasEcs
  }
  if (family !== IPV4 && family !== IPV6) return false
  if (sourceBits > (family === IPV4 ? 32 : 128)) return false
  const addressOctets = (sourceBits + 7) >> 3
  if (octets !== ECS_FIXED_OCTETS + addressOctets) return false
  const paddingBits = addressOctets * 8 - sourceBits
  const last = packet[at + octets - 1]!
  if (addressOctets > 0 && (last & ((1 << paddingBits) - 1)) !== 0) return false

  const address = query.ecsAddress
  for (let i = 0; i < 16; i++) {
    address[i] = i < addressOctets ? packet[at + ECS_FIXED_OCTETS + i]! : 0
  }
  query.hasEcs = true
  query.ecsFamily = family
  query.ecsSourceBits = sourceBits
  return true
}
