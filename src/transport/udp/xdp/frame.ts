/*
 * Frames of Ethernet that hold a UDP packet, in place. All offsets are relative to the frames of one
 * AF_XDP socket. Nothing here throws or allocates.
 *
 *     0 destination MAC   6 source MAC   12 EtherType   14 IPv4 or IPv6   34 or 54 UDP   42 or 62 DNS
 *
 * Internet checksums (RFC 1071) do not depend on the byte order: sums here are of 16-bit words as a
 * little-endian machine reads them.
 */

const ETHERTYPE_IPV4 = 0x0800
const ETHERTYPE_IPV6 = 0x86dd
const IP = 14
const IPV4_OCTETS = 20
const IPV6_OCTETS = 40
const UDP_OCTETS = 8
const PROTOCOL_UDP = 17
/** TTL and hop limit of replies. */
const HOPS = 64

export const IPV4_SOURCE = IP + 12
export const IPV4_DESTINATION = IP + 16
export const IPV6_SOURCE = IP + 8
export const IPV6_DESTINATION = IP + 24
/** Offset of the DNS message. */
export const IPV4_MESSAGE = IP + IPV4_OCTETS + UDP_OCTETS
export const IPV6_MESSAGE = IP + IPV6_OCTETS + UDP_OCTETS

/** Result of `scanFrame`: not a UDP packet that may be answered. */
export const REFUSED = -1
/** Set in the result of `scanFrame` for IPv6. */
export const IS_IPV6 = 0x1_0000

/**
 * Checks the frame of `octets` octets at `at`, and returns the octets of its DNS message, plus
 * IS_IPV6; REFUSED = drop it. A frame is refused if a length or the checksum of the IPv4 header is
 * wrong, if it is a fragment or has options, or if a reply to its source would be wrong: multicast,
 * broadcast, loopback, unspecified, port 0. The UDP checksum is not checked, because a sender on the
 * same machine leaves it unfinished, and the card has checked the others. @hot
 */
export function scanFrame(frames: DataView, at: number, octets: number): number {
  if (octets < IPV4_MESSAGE) return REFUSED
  // A multicast or broadcast MAC address is never a source.
  if ((frames.getUint8(at + 6) & 1) !== 0) return REFUSED
  const type = frames.getUint16(at + 12)
  if (type === ETHERTYPE_IPV4) return scanIPv4(frames, at, octets)
  if (type === ETHERTYPE_IPV6) return scanIPv6(frames, at, octets)
  return REFUSED
}

function scanIPv4(frames: DataView, at: number, octets: number): number {
  const ip = at + IP
  const ipOctets = frames.getUint16(ip + 2)
  if (frames.getUint8(ip) !== 0x45 || ipOctets > octets - IP) return REFUSED
  if ((frames.getUint16(ip + 6) & 0x3fff) !== 0) return REFUSED
  if (frames.getUint8(ip + 9) !== PROTOCOL_UDP) return REFUSED
  let sum = 0
  for (let i = 0; i < IPV4_OCTETS; i += 4) {
    const word = frames.getInt32(ip + i, true)
    sum += (word & 0xffff) + (word >>> 16)
  }
  if (checksum(sum) !== 0) return REFUSED
  const net = frames.getUint8(at + IPV4_SOURCE)
  if (net === 0 || net === 127 || net >= 224) return REFUSED
  return scanUdp(frames, at + IP + IPV4_OCTETS, ipOctets - IPV4_OCTETS)
}

function scanIPv6(frames: DataView, at: number, octets: number): number {
  if (octets < IPV6_MESSAGE) return REFUSED
  const ip = at + IP
  const ipOctets = frames.getUint16(ip + 4)
  if (frames.getUint8(ip) >> 4 !== 6 || ipOctets > octets - IP - IPV6_OCTETS) return REFUSED
  if (frames.getUint8(ip + 6) !== PROTOCOL_UDP) return REFUSED
  const source = at + IPV6_SOURCE
  if (frames.getUint8(source) === 0xff) return REFUSED
  // ::, ::1, and IPv4-mapped addresses, which never leave a machine.
  if (frames.getInt32(source) === 0 && frames.getInt32(source + 4) === 0) {
    const third = frames.getInt32(source + 8)
    const last = frames.getInt32(source + 12)
    if (third === 0xffff || (third === 0 && (last === 0 || last === 1))) return REFUSED
  }
  const result = scanUdp(frames, ip + IPV6_OCTETS, ipOctets)
  return result === REFUSED ? REFUSED : result | IS_IPV6
}

/** `octets`: what is left for UDP. */
function scanUdp(frames: DataView, udp: number, octets: number): number {
  const udpOctets = frames.getUint16(udp + 4)
  if (udpOctets < UDP_OCTETS || udpOctets > octets) return REFUSED
  return frames.getUint16(udp) === 0 ? REFUSED : udpOctets - UDP_OCTETS
}

/** Copies a message and returns the sum of its 16-bit words. @hot */
export function copyMessage(
  from: DataView,
  fromAt: number,
  to: DataView,
  toAt: number,
  octets: number,
): number {
  let sum = 0
  let i = 0
  for (; i + 4 <= octets; i += 4) {
    const word = from.getInt32(fromAt + i, true)
    to.setInt32(toAt + i, word, true)
    sum += (word & 0xffff) + (word >>> 16)
  }
  for (; i < octets; i++) {
    const octet = from.getUint8(fromAt + i)
    to.setUint8(toAt + i, octet)
    sum += (i & 1) === 0 ? octet : octet << 8
  }
  return sum
}

/**
 * Turns the headers of a received frame into those of its reply of `octets` octets with the sum
 * `sum` (`copyMessage`): swaps addresses and ports, and computes lengths and checksums. @hot
 */
export function turnIPv4(frames: DataView, at: number, octets: number, sum: number): void {
  swapMacs(frames, at)
  const ip = at + IP
  const udpOctets = UDP_OCTETS + octets
  const ipOctets = IPV4_OCTETS + udpOctets
  const source = frames.getInt32(ip + 12, true)
  const destination = frames.getInt32(ip + 16, true)
  const addresses =
    (source & 0xffff) + (source >>> 16) + (destination & 0xffff) + (destination >>> 16)
  // Version and header length, no differentiated service; no identification: "don't fragment" is set
  // (RFC 6864 section 4).
  frames.setUint16(ip, 0x4500)
  frames.setUint16(ip + 2, ipOctets)
  frames.setInt32(ip + 4, 0x0000_4000)
  frames.setUint16(ip + 8, (HOPS << 8) | PROTOCOL_UDP)
  const header = 0x0045 + swapped(ipOctets) + 0x0040 + swapped((HOPS << 8) | PROTOCOL_UDP)
  frames.setUint16(ip + 10, checksum(header + addresses), true)
  frames.setInt32(ip + 12, destination, true)
  frames.setInt32(ip + 16, source, true)
  turnUdp(frames, ip + IPV4_OCTETS, udpOctets, sum + addresses)
}

/** As `turnIPv4`. @hot */
export function turnIPv6(frames: DataView, at: number, octets: number, sum: number): void {
  swapMacs(frames, at)
  const ip = at + IP
  const udpOctets = UDP_OCTETS + octets
  frames.setInt32(ip, 0x6000_0000)
  frames.setUint16(ip + 4, udpOctets)
  frames.setUint16(ip + 6, (PROTOCOL_UDP << 8) | HOPS)
  let addresses = 0
  for (let i = 8; i < 24; i += 4) {
    const source = frames.getInt32(ip + i, true)
    const destination = frames.getInt32(ip + i + 16, true)
    addresses += (source & 0xffff) + (source >>> 16) + (destination & 0xffff) + (destination >>> 16)
    frames.setInt32(ip + i, destination, true)
    frames.setInt32(ip + i + 16, source, true)
  }
  turnUdp(frames, ip + IPV6_OCTETS, udpOctets, sum + addresses)
}

/** `sum`: of the message and the addresses. */
function turnUdp(frames: DataView, udp: number, udpOctets: number, sum: number): void {
  const ports = frames.getInt32(udp, true)
  const portSum = (ports & 0xffff) + (ports >>> 16)
  frames.setInt32(udp, (ports >>> 16) | (ports << 16), true)
  frames.setUint16(udp + 4, udpOctets)
  // The length counts in the pseudo-header and in the header.
  const total = sum + portSum + swapped(PROTOCOL_UDP) + 2 * swapped(udpOctets)
  const result = checksum(total)
  // 0 would mean that there is no checksum (RFC 768).
  frames.setUint16(udp + 6, result === 0 ? 0xffff : result, true)
}

function swapMacs(frames: DataView, at: number): void {
  const toHead = frames.getInt32(at, true)
  const toTail = frames.getInt16(at + 4, true)
  const fromHead = frames.getInt32(at + 6, true)
  const fromTail = frames.getInt16(at + 10, true)
  frames.setInt32(at, fromHead, true)
  frames.setInt16(at + 4, fromTail, true)
  frames.setInt32(at + 6, toHead, true)
  frames.setInt16(at + 10, toTail, true)
}

/** The complement of the folded sum. */
function checksum(sum: number): number {
  const once = (sum & 0xffff) + (sum >>> 16)
  return ~((once & 0xffff) + (once >>> 16)) & 0xffff
}

/** A 16-bit number in network byte order, as a little-endian machine reads it. */
function swapped(value: number): number {
  return ((value & 0xff) << 8) | (value >> 8)
}
