import * as packets from '../../base/packet-memory.ts'
import * as options from '../iana/options.ts'
import type { Query } from '../message/query.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { packetOctets, packetView } = packets
const { OptionCode } = options

const IPV4 = 1
const IPV6 = 2
/** Family, source bits and scope bits, which come before the address. */
const ECS_FIXED_OCTETS = 4
/** DO, the highest of the flags that follow the version (RFC 3225). */
const DNSSEC_OK = 0x80
/** CO, the next flag (RFC 9824 section 5.1). */
const COMPACT_OK = 0x40

/**
 * Parses an OPT record (RFC 6891 section 6.1.2) of the packet at `packet` of the packet memory into
 * `query`. `fixed`: offset of its type field; its ten fixed octets and `rdataOctets` of rdata are
 * inside the packet. Returns false if an option is malformed; `query` then keeps the options read so
 * far.
 */
export function parseOpt(
  query: Query,
  packet: number,
  fixed: number,
  rdataOctets: number,
): boolean {
  query.hasEdns = true
  query.payloadOctets = (packetOctets[fixed + 2]! << 8) | packetOctets[fixed + 3]!
  query.ednsVersion = packetOctets[fixed + 5]!
  const flags = packetOctets[fixed + 6]!
  query.dnssecOk = (flags & DNSSEC_OK) !== 0
  query.compactOk = (flags & COMPACT_OK) !== 0
  // Options of another version may have another format.
  if (query.ednsVersion !== 0) return true
  return parseOptions(query, packet, fixed + 10, fixed + 10 + rdataOctets)
}

/** If an option occurs twice, the first one counts (RFC 7873 section 4 requires it for cookies). */
function parseOptions(query: Query, packet: number, start: number, end: number): boolean {
  let seenEcs = false
  let at = start
  while (at < end) {
    if (at + 4 > end) return false
    const code = (packetOctets[at]! << 8) | packetOctets[at + 1]!
    const octets = (packetOctets[at + 2]! << 8) | packetOctets[at + 3]!
    at += 4
    if (at + octets > end) return false
    if (code === OptionCode.ECS) {
      if (!seenEcs && !parseEcs(query, at, octets)) return false
      seenEcs = true
    } else if (code === OptionCode.COOKIE) {
      if (query.cookieOctets === 0 && !parseCookie(query, at - packet, octets)) return false
    } else if (code === OptionCode.NSID) {
      query.nsidRequested = true
    } else if (code === OptionCode.KEEPALIVE) {
      // Only replies may have a timeout: RFC 7828 section 3.2.1.
      if (octets !== 0) return false
      query.keepaliveRequested = true
    } else if (code === OptionCode.ZONEVERSION) {
      // Only replies may have a version: RFC 9660 section 3.1.
      if (octets !== 0) return false
      query.zoneVersionRequested = true
    }
    at += octets
  }
  return true
}

/**
 * Parses a client cookie at `at` of the packet: 8 octets, alone or with a server cookie of 8..32 (RFC
 * 7873 section 5.2.2).
 */
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
  const head = packetView.getInt32(at)
  const family = head >>> 16
  const sourceBits = (head >>> 8) & 0xff
  if ((head & 0xff) !== 0) return false
  if (family === 0) {
    query.hasEcs = sourceBits === 0 && octets === ECS_FIXED_OCTETS
    return query.hasEcs
  }
  if (family !== IPV4 && family !== IPV6) return false
  if (sourceBits > (family === IPV4 ? 32 : 128)) return false
  const addressOctets = (sourceBits + 7) >> 3
  if (octets !== ECS_FIXED_OCTETS + addressOctets) return false
  const paddingBits = addressOctets * 8 - sourceBits
  const last = packetOctets[at + octets - 1]!
  if (addressOctets > 0 && (last & ((1 << paddingBits) - 1)) !== 0) return false

  const { ecsWords } = query
  ecsWords[0] = addressWord(at + ECS_FIXED_OCTETS, addressOctets)
  for (let word = 1; word < 4; word++) {
    // An IPv4 address has one word.
    const rest = addressOctets - word * 4
    ecsWords[word] = rest <= 0 ? 0 : addressWord(at + ECS_FIXED_OCTETS + word * 4, rest)
  }
  query.hasEcs = true
  query.ecsFamily = family
  query.ecsSourceBits = sourceBits
  return true
}

/** Returns the four octets at `at` of the packet, with octets from number `octets` on as 0. */
function addressWord(at: number, octets: number): number {
  const word = packetView.getInt32(at, true)
  return octets >= 4 ? word : word & ((1 << (octets * 8)) - 1)
}
