/*
 * Frames of Ethernet that hold a UDP packet, in place. Frames are read and written by four octets, as
 * a little-endian machine has them. The headroom of a frame (`HEADROOM_OCTETS`) aligns its IP header,
 * so a frame is known by the index of the first word of that header:
 *
 *     words   -4 ‥ -1            0 ‥ 4 or 9     5, 6 or 10, 11     7 or 12 ‥
 *     octets  2 of others, MACs,  IPv4 or IPv6  UDP                DNS
 *             EtherType
 *
 * Nothing here throws or allocates. Internet checksums (RFC 1071) do not depend on the byte order:
 * sums here are of 16-bit words as the machine reads them.
 */

/** Octets of an Ethernet header. */
export const ETHERNET_OCTETS = 14
const IPV4_OCTETS = 20
const UDP_OCTETS = 8
const PROTOCOL_UDP = 17
/** TTL and hop limit of replies. */
const HOPS = 64

// Words from the IP header on.
export const IPV4_SOURCE = 3
export const IPV4_DESTINATION = 4
export const IPV4_PORTS = 5
export const IPV4_MESSAGE = 7
export const IPV6_SOURCE = 2
export const IPV6_DESTINATION = 6
export const IPV6_PORTS = 10
export const IPV6_MESSAGE = 12

/** Octets of a frame in front of its message. */
const IPV4_FRAME_OCTETS = ETHERNET_OCTETS + IPV4_MESSAGE * 4
const IPV6_FRAME_OCTETS = ETHERNET_OCTETS + IPV6_MESSAGE * 4

// As the words above contain them.
const ETHERTYPE_IPV4 = 0x0008
const ETHERTYPE_IPV6 = 0xdd86
/** "More fragments" and the offset, in the second half of the word. */
const FRAGMENT_BITS = 0xff3f_0000
const IPV4_MAPPED = 0xffff_0000 | 0
const ADDRESS_ONE = 0x0100_0000

/** Result of `scanFrame`: not a UDP packet that may be answered. */
export const REFUSED = -1
/** Set in the result of `scanFrame` for IPv6. */
export const IS_IPV6 = 0x1_0000

/**
 * Checks the frame of `octets` octets whose IP header starts at word `ip`, and returns the octets of
 * its DNS message, plus IS_IPV6; REFUSED = drop it. A frame is refused if a length or the checksum of
 * the IPv4 header is wrong, if it is a fragment or has options, or if a reply to its source would be
 * wrong: multicast, broadcast, loopback, unspecified, port 0. The UDP checksum is not checked, because
 * a sender on the same machine leaves it unfinished, and the card has checked the others. @hot
 */
export function scanFrame(words: Int32Array, ip: number, octets: number): number {
  if (octets < IPV4_FRAME_OCTETS) return REFUSED
  // A multicast or broadcast MAC address is never a source.
  if ((words[ip - 2]! & 1) !== 0) return REFUSED
  const type = words[ip - 1]! >>> 16
  if (type === ETHERTYPE_IPV4) return scanIPv4(words, ip, octets - ETHERNET_OCTETS)
  if (type === ETHERTYPE_IPV6) return scanIPv6(words, ip, octets - ETHERNET_OCTETS)
  return REFUSED
}

function scanIPv4(words: Int32Array, ip: number, octets: number): number {
  const start = words[ip]!
  const fragment = words[ip + 1]!
  const protocol = words[ip + 2]!
  const source = words[ip + IPV4_SOURCE]!
  const ipOctets = swapped(start >>> 16)
  if ((start & 0xff) !== 0x45 || ipOctets > octets) return REFUSED
  if ((fragment & FRAGMENT_BITS) !== 0) return REFUSED
  if (((protocol >>> 8) & 0xff) !== PROTOCOL_UDP) return REFUSED
  const header = halves(start) + halves(fragment) + halves(protocol)
  const sum = header + halves(source) + halves(words[ip + IPV4_DESTINATION]!)
  if (checksum(sum) !== 0) return REFUSED
  const net = source & 0xff
  if (net === 0 || net === 127 || net >= 224) return REFUSED
  return scanUdp(words, ip + IPV4_PORTS, ipOctets - IPV4_OCTETS)
}

function scanIPv6(words: Int32Array, ip: number, octets: number): number {
  if (octets < IPV6_FRAME_OCTETS - ETHERNET_OCTETS) return REFUSED
  const lengths = words[ip + 1]!
  const udpOctets = swapped(lengths & 0xffff)
  if ((words[ip]! & 0xf0) !== 0x60 || udpOctets > octets - IPV6_PORTS * 4) return REFUSED
  if (((lengths >>> 16) & 0xff) !== PROTOCOL_UDP) return REFUSED
  const source = ip + IPV6_SOURCE
  const first = words[source]!
  if ((first & 0xff) === 0xff) return REFUSED
  // ::, ::1, and IPv4-mapped addresses, which never leave a machine.
  if (first === 0 && words[source + 1] === 0) {
    const third = words[source + 2]!
    const last = words[source + 3]!
    if (third === IPV4_MAPPED) return REFUSED
    if (third === 0 && (last === 0 || last === ADDRESS_ONE)) return REFUSED
  }
  const result = scanUdp(words, ip + IPV6_PORTS, udpOctets)
  return result === REFUSED ? REFUSED : result | IS_IPV6
}

/** `octets`: what is left for UDP. */
function scanUdp(words: Int32Array, udp: number, octets: number): number {
  const udpOctets = swapped(words[udp + 1]! & 0xffff)
  if (udpOctets < UDP_OCTETS || udpOctets > octets) return REFUSED
  return (words[udp]! & 0xffff) === 0 ? REFUSED : udpOctets - UDP_OCTETS
}

/** Copies `octets` octets between word indexes, and at most three octets behind them. @hot */
export function copyWords(
  from: Int32Array,
  fromAt: number,
  to: Int32Array,
  toAt: number,
  octets: number,
): void {
  const end = fromAt + ((octets + 3) >> 2)
  let at = fromAt
  let out = toAt
  for (; at + 4 <= end; at += 4, out += 4) {
    to[out] = from[at]!
    to[out + 1] = from[at + 1]!
    to[out + 2] = from[at + 2]!
    to[out + 3] = from[at + 3]!
  }
  for (; at < end; at++, out++) to[out] = from[at]!
}

/** As `copyWords`, but writes zeros behind the octets, and returns the sum of their 16-bit words. @hot */
export function copyAndSum(
  from: Int32Array,
  fromAt: number,
  to: Int32Array,
  toAt: number,
  octets: number,
): number {
  const end = fromAt + (octets >> 2)
  let at = fromAt
  let out = toAt
  let sum = 0
  for (; at + 4 <= end; at += 4, out += 4) {
    const a = from[at]!
    const b = from[at + 1]!
    const c = from[at + 2]!
    const d = from[at + 3]!
    to[out] = a
    to[out + 1] = b
    to[out + 2] = c
    to[out + 3] = d
    sum = (sum + halves(a) + halves(b) + halves(c) + halves(d)) | 0
  }
  for (; at < end; at++, out++) {
    const word = from[at]!
    to[out] = word
    sum = (sum + halves(word)) | 0
  }
  const rest = octets & 3
  if (rest === 0) return sum
  const last = from[at]! & ((1 << (rest << 3)) - 1)
  to[out] = last
  return (sum + halves(last)) | 0
}

/**
 * Turns the headers of a received frame into those of its reply of `octets` octets with the sum
 * `sum` (`copyAndSum`): swaps addresses and ports, and computes lengths and checksums. @hot
 */
export function turnIPv4(words: Int32Array, ip: number, octets: number, sum: number): void {
  turnEthernet(words, ip)
  const udpOctets = UDP_OCTETS + octets
  const ipOctets = swapped(IPV4_OCTETS + udpOctets)
  const source = words[ip + IPV4_SOURCE]!
  const destination = words[ip + IPV4_DESTINATION]!
  const addresses = halves(source) + halves(destination)
  // Version and header length, no differentiated service; no identification: "don't fragment" is set
  // (RFC 6864 section 4).
  const header = 0x0045 + ipOctets + 0x0040 + (HOPS | (PROTOCOL_UDP << 8)) + addresses
  words[ip] = 0x0045 | (ipOctets << 16)
  words[ip + 1] = 0x0040_0000
  words[ip + 2] = HOPS | (PROTOCOL_UDP << 8) | (checksum(header) << 16)
  words[ip + IPV4_SOURCE] = destination
  words[ip + IPV4_DESTINATION] = source
  turnUdp(words, ip + IPV4_PORTS, udpOctets, sum + addresses)
}

/** As `turnIPv4`. @hot */
export function turnIPv6(words: Int32Array, ip: number, octets: number, sum: number): void {
  turnEthernet(words, ip)
  const udpOctets = UDP_OCTETS + octets
  words[ip] = 0x60
  words[ip + 1] = swapped(udpOctets) | (PROTOCOL_UDP << 16) | (HOPS << 24)
  let addresses = 0
  for (let i = ip + IPV6_SOURCE; i < ip + IPV6_DESTINATION; i++) {
    const source = words[i]!
    const destination = words[i + 4]!
    addresses += halves(source) + halves(destination)
    words[i] = destination
    words[i + 4] = source
  }
  turnUdp(words, ip + IPV6_PORTS, udpOctets, sum + addresses)
}

/** `sum`: of the message and the addresses. */
function turnUdp(words: Int32Array, udp: number, udpOctets: number, sum: number): void {
  const ports = words[udp]!
  const length = swapped(udpOctets)
  words[udp] = (ports >>> 16) | (ports << 16)
  // The length counts in the pseudo-header and in the header.
  const result = checksum(sum + halves(ports) + (PROTOCOL_UDP << 8) + 2 * length)
  // 0 would mean that there is no checksum (RFC 768).
  words[udp + 1] = length | ((result === 0 ? 0xffff : result) << 16)
}

/** Swaps the MAC addresses, and keeps the two octets in front of them. */
function turnEthernet(words: Int32Array, ip: number): void {
  const a = words[ip - 4]!
  const b = words[ip - 3]!
  const c = words[ip - 2]!
  const d = words[ip - 1]!
  words[ip - 4] = (a & 0xffff) | (c << 16)
  words[ip - 3] = (c >>> 16) | (d << 16)
  words[ip - 2] = (a >>> 16) | (b << 16)
  words[ip - 1] = (b >>> 16) | (d & 0xffff_0000)
}

/** The sum of the two halves of a word. */
function halves(word: number): number {
  return (word & 0xffff) + (word >>> 16)
}

/** The complement of the folded sum. */
function checksum(sum: number): number {
  const once = (sum & 0xffff) + (sum >>> 16)
  return ~((once & 0xffff) + (once >>> 16)) & 0xffff
}

/** A 16-bit number in network byte order, as a little-endian machine reads it, and the reverse. */
function swapped(value: number): number {
  return ((value & 0xff) << 8) | (value >> 8)
}
