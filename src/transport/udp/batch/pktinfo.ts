import { copyIPv4, copyIPv6 } from './octets.ts'

const IPPROTO_IP = 0
const IP_PKTINFO = 8
const IPPROTO_IPV6 = 41
const IPV6_PKTINFO = 50

/** CMSG_LEN and CMSG_SPACE of the two messages. Both start: cmsg_len 0..7, cmsg_level 8, cmsg_type 12. */
const PKTINFO_LEN = 28
const PKTINFO_SPACE = 32
const PKTINFO6_LEN = 36
const PKTINFO6_SPACE = 40
/** struct in_pktinfo: ipi_ifindex 16, ipi_spec_dst 20, ipi_addr 24. */
const PKTINFO_IFINDEX = 16
const PKTINFO_SPEC_DST = 20
/** struct in6_pktinfo: ipi6_addr 16..31, ipi6_ifindex 32. */
const PKTINFO6_ADDR = 16
const PKTINFO6_IFINDEX = 32

/**
 * Octets of the control message at `control` that has a packet's destination address; 0 = there is
 * none.
 */
function pktinfoSpace(words: Uint32Array, control: number): number {
  const level = words[(control + 8) >> 2]!
  const type = words[(control + 12) >> 2]!
  if (level === IPPROTO_IP && type === IP_PKTINFO) {
    return words[control >> 2] === PKTINFO_LEN ? PKTINFO_SPACE : 0
  }
  if (level === IPPROTO_IPV6 && type === IPV6_PKTINFO) {
    return words[control >> 2] === PKTINFO6_LEN ? PKTINFO6_SPACE : 0
  }
  return 0
}

/**
 * Writes the destination address of a packet to 16 octets of `out` and returns the family; 0 =
 * unknown. @hot
 */
export function readAsked(
  words: Uint32Array,
  octets: Uint8Array,
  control: number,
  out: Uint8Array,
): number {
  switch (pktinfoSpace(words, control)) {
    case PKTINFO_SPACE:
      return copyIPv4(octets, control + PKTINFO_SPEC_DST, out)
    case PKTINFO6_SPACE:
      return copyIPv6(octets, control + PKTINFO6_ADDR, out)
    default:
      return 0
  }
}

/**
 * Turns the message with a packet's destination address into one with its reply's source address.
 * Returns its octets, 0 = there is none. @hot
 */
export function turnAround(words: Uint32Array, control: number): number {
  const space = pktinfoSpace(words, control)
  if (space === 0) return 0
  // No interface: the routing table chooses it for the reply, as for other sockets.
  const ifindex = space === PKTINFO_SPACE ? PKTINFO_IFINDEX : PKTINFO6_IFINDEX
  words[(control + ifindex) >> 2] = 0
  return space
}

/** Whether two messages of `space` octets, as `turnAround` left them, have the same address. @hot */
export function isSameAsked(words: Uint32Array, a: number, b: number, space: number): boolean {
  if (space === 0) return true
  if (space === PKTINFO_SPACE) {
    return words[(a + PKTINFO_SPEC_DST) >> 2] === words[(b + PKTINFO_SPEC_DST) >> 2]
  }
  for (let i = PKTINFO6_ADDR; i < PKTINFO6_IFINDEX; i += 4) {
    if (words[(a + i) >> 2] !== words[(b + i) >> 2]) return false
  }
  return true
}

/** Writes a message with the destination address `address`, 4 or 16 octets. */
export function putPktinfo(octets: Uint8Array, control: number, address: Uint8Array): void {
  const isIPv4 = address.length === 4
  const view = new DataView(octets.buffer, octets.byteOffset + control)
  view.setUint32(0, isIPv4 ? PKTINFO_LEN : PKTINFO6_LEN, true)
  view.setUint32(8, isIPv4 ? IPPROTO_IP : IPPROTO_IPV6, true)
  view.setUint32(12, isIPv4 ? IP_PKTINFO : IPV6_PKTINFO, true)
  octets.set(address, control + (isIPv4 ? PKTINFO_SPEC_DST : PKTINFO6_ADDR))
}
