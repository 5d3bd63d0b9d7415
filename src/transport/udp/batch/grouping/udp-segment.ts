import type { Libc } from '../libc.ts'

// The constants of <netinet/udp.h> and <sys/socket.h> on the architectures of `libc.ts`.
const AF_INET = 2
const SOCK_DGRAM = 2
const SOCK_CLOEXEC = 0x80000
const SOL_UDP = 17
const UDP_SEGMENT = 103

/** CMSG_LEN and CMSG_SPACE of a message that holds a 16-bit number; it starts as in `pktinfo.ts`. */
const SEGMENT_LEN = 18
export const SEGMENT_SPACE = 24

/**
 * Writes the control message that makes the kernel segment a message into datagrams of `octets`
 * octets; the last one has the rest (udp(7), UDP_SEGMENT). `control`: a multiple of 8, with room
 * for SEGMENT_SPACE octets. @hot
 */
export function writeSegment(words: Uint32Array, control: number, octets: number): void {
  const at = control >> 2
  words[at] = SEGMENT_LEN
  words[at + 1] = 0
  words[at + 2] = SOL_UDP
  words[at + 3] = UDP_SEGMENT
  words[at + 4] = octets
}

/**
 * Whether the kernel supports that message (Linux 4.18 and later). Other kernels ignore it and send
 * all as one datagram, so the support must be checked first.
 */
export function cutsMessages(libc: Libc): boolean {
  const fd = libc.socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)
  if (fd === -1) return false
  const words = Uint32Array.of(0, 4)
  const value = libc.addressOf(words)
  const knows = libc.getsockopt(fd, SOL_UDP, UDP_SEGMENT, value, value + 4) === 0
  libc.close(fd)
  return knows
}
